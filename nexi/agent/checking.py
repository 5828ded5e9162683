"""Has the answer of a run checked, and says what the reader should know of it.

`checking` does the work. This module says who judges and until when, asks the model to write again what a judge rejected, and
warns. The text is out before the judge is asked, so that its call overlaps the reading; only a strict answer waits for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import date

from msgspec.structs import replace

from nexi.agent._search_failures import describe_failed_web
from nexi.agent.context import RunContext
from nexi.answers.answered import NOTHING_ANSWERS, NOTHING_FOUND, list_readings
from nexi.answers.citations import extract_citation_markers
from nexi.answers.papers import group_works, mark_standing, read_standing
from nexi.answers.safe_markdown import load_parsers, make_inert, name_hosts
from nexi.budget import smallest_limit
from nexi.checking.answer import AnswerCheck, Rejected, Verifier
from nexi.checking.conflicts import find_conflicts
from nexi.checking.correction import rewrite_sentences
from nexi.checking.judge import Case, Judge, Judgement, Judging
from nexi.checking.links import with_links
from nexi.checking.pages import Pages
from nexi.checking.review import PASSING, is_rejected
from nexi.errors import LLMError, VerificationError
from nexi.events import AnswerChecked, ConflictsFound, MarksDelta, SentenceMark, SourcesRenumbered, StatusDelta, TextDelta
from nexi.notices import Notice, join_causes
from nexi.tasks import start_task
from nexi.text import scope
from nexi.text.languages import detect_language, name_language
from nexi.text.references import describe_open_reference, find_open_reference, find_parties, name_subject
from nexi.tools.toolbox import LOCAL_BACKEND
from nexi.types import Answer, Answered, Claim, Conflict, Message, PageView, Proof, Reply, Review, Source, StopReason, Verdict
from nexi.urls import is_web_url

JUDGE_PATIENCE_S = 60.0  # of a run without a time target
MAX_NAMED = 3  # sentences that a warning repeats
MAX_NAMED_CHARS = 160
MAX_EARLIER_QUESTIONS = 3  # that a question is understood by
STOPPED = "the run was stopped"


class StreamedAnswerCheck:
    """Checks a text while it is still being written; `tasks` owns the checking."""

    def __init__(self, check: AnswerCheck, tasks: asyncio.TaskGroup) -> None:
        self.check, self._tasks = check, tasks
        self._checking: asyncio.Task[None] | None = None

    def feed(self, text: str) -> None:
        self.check.stream.feed(text)
        if self.check.is_waiting and (self._checking is None or self._checking.done()):
            self._checking = start_task(self._tasks, self.check.drain(), name="check the answer")


class _RunBoundJudge:
    """A judge within one run: until the run's deadline or its stop, about its question, and about each sentence once."""

    def __init__(self, judge: Judge, context: RunContext, judgings: dict[Case, Judging]) -> None:
        self._judge, self._context, self._known = judge, context, judgings

    @property
    def name(self) -> str:
        return self._judge.name

    async def judge(self, cases: Sequence[Case], pages: Pages, question: str = "", *, deadline: float | None = None) -> Judging:
        context, judgings, stopped = self._context, self._known, Judging((Judgement(reason=STOPPED),) * len(cases))
        if cases and all(case in judgings for case in cases):
            return Judging(tuple(judgings[case].judgements[0] for case in cases), judgings[cases[0]].judge)
        if context.stop.is_set():
            return stopped
        context.emit.delta(StatusDelta(f"asking the judge about {len(cases)} sentence{'s' * (len(cases) != 1)}"))
        until = smallest_limit(context.clock.monotonic() + JUDGE_PATIENCE_S, context.meter.deadline)
        judging = await context.run_unless_cancelled(self._judge.judge(cases, pages, context.question, deadline=until))
        if isinstance(judging, StopReason):
            return stopped
        for case, judgement in zip(cases, judging.judgements, strict=True):
            if judgement.finding:
                judgings[case] = Judging((judgement,), judging.judge)
        return judging


class AnswerChecker:
    """Checks and releases the answers of one run. Without a verifier an answer is released unchecked."""

    def __init__(self, context: RunContext, verifier: Verifier | None = None, *, drops_repeats: bool = False) -> None:
        self.context, self.verifier = context, verifier
        self._drops_repeats = drops_repeats  # what several researchers found stands in a report once
        self._rated: tuple[list[PageView], Answered] = ([], "")  # the last pages that were rated, and their rating
        self._judged: dict[Case, Judging] = {}  # of texts that were tried before they were released

    async def prepare(self) -> None:
        """Do what an answer will need and only the pages decide, while the model thinks."""
        if self.verifier:
            await asyncio.to_thread(load_parsers)
            await self.verifier.snapshots.prepare_all()
        if self.verifier is None or self.verifier.rewrites:  # the built-in model has rated its pages when it has answered
            await self._rate_read_pages()

    def open_check(self, *, by_model: bool = True) -> AnswerCheck:
        """Begin the check of one answer. `by_model` is False for quotations, which are never rewritten."""
        return AnswerCheck(
            self.context.session,
            self.verifier,
            lambda text: self.context.emit.delta(TextDelta(text)),
            by_model=by_model,
            show_marks=self._emit_marks,
            renumbers=True,
            drops_repeats=self._drops_repeats,
        )

    def _emit_marks(self, claims: Sequence[Claim]) -> None:
        marks = tuple(SentenceMark(c.start, c.end, c.verdict, c.reason) for c in Proof(tuple(claims)).checked)
        if marks:
            self.context.emit.delta(MarksDelta(marks))

    async def check_answer(self, text: str, stop: StopReason, *, by_model: bool = True) -> Answer:
        """Check and release a text that is complete."""
        return await self.finish_check(self.open_check(by_model=by_model), stop, text)

    async def check_sentences(self, text: str, quotation: str, stop: StopReason) -> Answer:
        """Check the sentence or two of a small model, "" for none; the quotation stands in for what fails."""
        sentences, review = await self._try_check(text)
        if review and sentences:
            first = text.find(review.proof.checked[0].text)  # which carries the answer
            lacks_first = any(text.find(claim.text) <= first for claim in review.dropped)
            numbers, adds = extract_citation_markers(sentences), self.context.adds_answer
            titles = " ".join(source.title for source in self.context.session.book.sources if source.number in numbers)
            spans = " ".join(e.span for claim in review.proof.checked for e in claim.evidence if e.verdict in PASSING)
            support = f"{spans.replace('[', ' ')} {quotation}"  # a name may come from the passage that supports the sentence
            if lacks_first or (adds and not adds(self.context.question, sentences, support, titles)):
                sentences = ""
        if sentences:
            return await self.finish_check(self.open_check(), stop, sentences, may_rewrite=False)
        if text:
            notice = Notice(
                "answer.replaced",
                "what {model} wrote is not found in the pages, so passages of them stand here",
                model=self.context.llm.name,
            )
            await self.context.warn("replaced", notice)
        return await self.check_answer(quotation, stop, by_model=False)

    async def keep_supported(self, text: str) -> str:
        """The sentences of a text that are found or supported."""
        return (await self._try_check(text))[0]

    async def _try_check(self, text: str) -> tuple[str, Review | None]:
        """What a strict check leaves of a text, "" where nothing passes; nothing is released."""
        if self.verifier is None:
            return (text if extract_citation_markers(text) else ""), None
        trial = AnswerCheck(self.context.session, replace(self.verifier, strict=True), lambda text: None)
        trial.stream.feed(text)
        clean, review = await trial.finish(self._open_judge(by_model=False))
        return (clean if review and review.proof.passed else ""), review

    async def finish_check(self, check: AnswerCheck, stop: StopReason, rest: str = "", *, may_rewrite: bool = True) -> Answer:
        """Check the rest of an answer and add the answer, as it stands at the end, to the conversation."""
        context = self.context
        check.stream.feed(rest)
        if earlier := context.llm.replay.earlier_check:
            check.stream.finish()
            await self._settle_numbers(check)
            return await self._conclude(earlier.answer, stop, earlier.conflicts, earlier.review)  # as it was shown then
        judge = self._open_judge(by_model=check.by_model)
        rewrite = self._rewrite_rejected if may_rewrite and check.by_model and context.can_call_model() else None
        clean, review = await check.finish(judge, rewrite)
        await self._settle_numbers(check)
        review = replace(review, proof=mark_standing(review.proof, context.session.book.sources)) if review else None
        await self._warn_about_citations(check, clean)
        messages = context.session.messages
        last = max((i for i, m in enumerate(messages) if m.role == "user" and context.question in m.content), default=0)
        if why := describe_failed_web(messages[last:], LOCAL_BACKEND):
            await context.warn("search_failed", why)
        if review:
            await self._warn_about_review(review)
        notes = self._list_notes(clean)
        for note in notes:
            context.emit.delta(TextDelta(f"\n\n{note}"))
        conflicts = await self._report_conflicts(review)
        clean = "\n\n".join((clean, *notes, *(make_inert(conflict.sentence()) for conflict in conflicts)))
        await self._warn_about_sources(self._list_cited(clean))
        return await self._conclude(clean, stop, conflicts, review)

    async def _settle_numbers(self, check: AnswerCheck) -> None:
        """Say which sources have another number in the answer than the model was given."""
        if new_numbers := check.moved_numbers:
            context = self.context
            context.session.renumber_sources(new_numbers)
            sources = (source for source in context.session.book.sources if source.number in new_numbers.values())
            await context.emit(SourcesRenumbered(tuple(sources)))

    def _list_cited(self, text: str) -> tuple[Source, ...]:
        numbers = extract_citation_markers(text)
        return tuple(s for s in self.context.session.book.sources if s.number in numbers)

    async def _conclude(self, text: str, stop: StopReason, conflicts: tuple[Conflict, ...], review: Review | None) -> Answer:
        """Add an answer to the conversation; it gets links into its sources and a rating."""
        is_open = bool(self._find_open_reference())  # before the answer itself is of the conversation
        self.context.session.messages.append(Message("assistant", text))
        sources = self._list_cited(text)
        if review and self.verifier:
            pages = await self.verifier.snapshots.of([source.number for source in sources])
            sources = await asyncio.to_thread(with_links, sources, review.proof.claims, pages)
        rating = await self._rate_answer(review)
        # the text is what the reader sees; a report may say it further down
        if rating and (text.startswith((NOTHING_ANSWERS, NOTHING_FOUND)) or (self._drops_repeats and NOTHING_ANSWERS in text)):
            rating = "no"
        if rating and is_open:  # a page about the thing that is meant may answer
            rating = "depends"
        return Answer(text, sources, stop, tuple(self.context.warnings), conflicts, review, rating)

    def _list_earlier_turns(self) -> list[Message]:
        """What was asked and answered in the conversation before this question; research adds its question only at the end."""
        turns = [m for m in self.context.session.messages if m.role in ("user", "assistant")]
        return turns[: max((i for i, m in enumerate(turns) if self.context.question in m.content), default=len(turns))]

    def _join_earlier_questions(self) -> str:
        questions = [m.content for m in self._list_earlier_turns() if m.role == "user"]
        return " ".join(questions[-MAX_EARLIER_QUESTIONS:])

    def _find_open_reference(self) -> str:
        """The kind of thing that the question speaks of and that neither the conversation nor a file has named."""
        return "" if self.context.has_own_files else find_open_reference(self.context.question, self._list_earlier_turns())

    def _list_notes(self, text: str) -> list[str]:
        """What the question leaves open, with what the cited pages are about; and their newest day, if it asks about now."""
        notes, sources = [], self._list_cited(text)
        if not list_readings(text, "depends") and (kind := self._find_open_reference() if self.context.rate_pages else ""):
            texts = {s.number: page.text for s in sources if (page := self.context.session.find_page(s.url))}
            subjects = {name_subject(source.title, texts.get(source.number, "")): source.number for source in sources}
            readings = [f"{make_inert(subject)} [{number}]" for subject, number in subjects.items() if subject]
            about = f"; this answer is about {' and '.join(readings[:MAX_NAMED])}" if readings else ""
            notes.append(f"The question does not say {describe_open_reference(self.context.question, kind)}{about}.")
        days = [day for source in sources if (day := scope.plausible_day(source.imprint))]
        if days and scope.asks_for_now(self.context.question):
            months = (self.context.clock.now().date() - date.fromisoformat(max(days))).days // 30
            age = f", {months} months ago" if months > 1 else ""
            notes.append(f"**As of {scope.name_day(max(days))}{age}**")
        return notes

    async def _warn_about_sources(self, sources: Sequence[Source]) -> None:
        """Warn of cited pages that are stored, retracted, or in another language than the question."""
        context = self.context
        # pages of the web that were read for another question: what they said then may be wrong, or was never right
        stored_pages = [s for s in sources if is_web_url(s.url) and s.url in context.session.recalled_urls]
        if stored_pages:
            names = ", ".join(f"[{s.number}] of {s.imprint.accessed[:10] or 'an earlier day'}" for s in stored_pages)
            notice = Notice("pages.stored", "from the knowledge base, not read again for this question: {pages}", pages=names)
            await context.warn("stored_pages", notice)
        if standings := list(filter(None, map(_describe_standing, sources))):
            await context.warn("retracted_source", join_causes(standings))
        language = detect_language(context.question)
        pages = {detect_language(page.text[:4000]) for s in sources if (page := context.session.find_page(s.url))}
        if language and pages and not pages & {language, ""}:
            names = " and ".join(sorted(name_language(code) for code in pages))
            notice = Notice(
                "pages.other_language",
                "the pages are in {languages}, another language than the question ({asked})",
                languages=names,
                asked=name_language(language),
            )
            await context.warn("other_language", notice)

    async def _rate_answer(self, review: Review | None) -> Answered:
        """Whether the pages that were read, in their own words and those of sentences that passed, answer the question."""
        rating = await self._rate_read_pages()
        views, rate = self.context.read_pages(), self.context.rate_pages
        if rate is None or not rating or self.verifier is None or not self.verifier.rewrites:
            return rating
        earlier = self._join_earlier_questions()
        claims = review.proof.checked if review else ()
        sentences = [claim.text for claim in claims if claim.verdict in PASSING]
        answer = PageView("", 0, "", "\n\n".join(sentences))  # a model has words of its own; quotations have not
        is_judged_true = bool(claims) and all(claim.verdict is Verdict.SUPPORTED for claim in claims)
        if rating != "yes":
            rating = await asyncio.to_thread(rate, self.context.question, [*views, answer], earlier)
            return "yes" if rating == "likely" and is_judged_true else rating  # a judge has read it all: words stop counting
        spans = [e.span for claim in claims if claim.verdict in PASSING for e in claim.evidence]
        with_spans = replace(answer, text="\n\n".join((answer.text, *spans)))  # "it" in a sentence has a name in its passage
        is_rated = bool(sentences) and not is_judged_true
        own = await asyncio.to_thread(rate, self.context.question, [with_spans], earlier) if is_rated else rating
        return "likely" if own == "no" else rating  # the text speaks of something else, whatever words its pages have

    async def _rate_read_pages(self) -> Answered:
        """Whether the pages that were read answer the question; "" where there is nothing to rate."""
        # the built-in model has read them as it was given them, and what it worked out then is not worked out again
        is_built_in = self.verifier is not None and not self.verifier.rewrites
        views, rate = (is_built_in and self.context.shown_pages()) or self.context.read_pages(), self.context.rate_pages
        if rate is None or not views or not self.context.question:
            return ""
        if self._rated[0] != views:
            earlier = self._join_earlier_questions()
            self._rated = views, await asyncio.to_thread(rate, self.context.question, views, earlier)
        return self._rated[1]

    async def warn_if_cut_off(self, reply: Reply, *, is_broken: bool, is_unfinished: bool) -> None:
        """Warn of an answer that has no end. `is_broken`: the stream failed; `is_unfinished`: the answer argument is open."""
        reached_limit = reply.finish == "length" and not is_broken
        if is_unfinished or (reached_limit and not reply.tool_calls):
            limit = Notice("answer.at_limit", "the answer breaks off where it reached the output limit (--max-len)")
            stop = Notice("answer.unfinished", "the answer breaks off where the model stopped writing (ask again, or use -m)")
            await self.context.warn("cut", limit if reached_limit else stop)

    async def _report_conflicts(self, review: Review | None) -> tuple[Conflict, ...]:
        """Show below the answer where the pages disagree on what it says; such values are never averaged."""
        if review is None or self.verifier is None:
            return ()
        sources = self.context.session.book.sources
        titles = {source.number: source.title for source in sources}
        pages = await self.verifier.snapshots.of(titles)
        heads = {s.number: page.text[: scope.MAX_HEAD_CHARS] for s in sources if (page := pages.get(s.number))}
        today = "" if scope.asks_for_future(self.context.question) else self.context.clock.now().date().isoformat()
        days = {s.number: scope.plausible_day(s.imprint) for s in sources}
        scopes = {s.number: scope.read_scope(s.title, s.url, heads.get(s.number, ""), days[s.number], today) for s in sources}
        parties = [find_parties(self.context.question, s.title, heads.get(s.number, "")) for s in sources]
        for place in scope.find_others_of_family([scopes[s.number] for s in sources], parties):
            pages[sources[place].number] = None  # a contract with somebody else disagrees with nothing
        claims, works = review.proof.claims, group_works(sources)
        conflicts = await asyncio.to_thread(find_conflicts, self.context.question, claims, pages, titles, scopes, works)
        if conflicts:
            await self.context.emit(ConflictsFound(conflicts))
        for conflict in conflicts:
            self.context.emit.delta(TextDelta(f"\n\n{make_inert(conflict.sentence())}"))
        return conflicts

    async def _rewrite_rejected(self, rejected: Sequence[Rejected]) -> Mapping[int, str] | None:
        """Ask the model to write again what a judge rejected; None when it could not be asked."""
        context, settings = self.context, self.context.settings
        if not context.can_call_model():
            return None
        llm, most, folder = context.llm.as_role("correct"), settings.max_output_tokens, settings.prompts_folder
        deadline = context.call_deadline()
        request = rewrite_sentences(llm, context.question, rejected, max_tokens=most, deadline=deadline, prompts_folder=folder)
        try:
            sentences = await context.run_unless_cancelled(request)
        except LLMError as error:
            if error.code in ("budget_spent", "not_recorded"):
                return None
            notice = Notice(
                "answer.not_corrected", "the model could not correct what the judge rejected ({error})", error=str(error)
            )
            await context.warn("not_corrected", notice)
            return {}
        return {} if isinstance(sentences, StopReason) else sentences

    def _open_judge(self, *, by_model: bool) -> Judge | None:
        judge = self.verifier.open_judge(by_model and self.verifier.rewrites) if self.verifier else None
        return _RunBoundJudge(judge, self.context, self._judged) if judge else None

    async def _warn_about_review(self, review: Review) -> None:
        """Warn of what a judge rejected. Raises VerificationError for a strict answer without a sentence left."""
        warn, claims = self.context.warn, review.proof.checked
        total = len(claims) + len(review.dropped)
        rejections = [claim for claim in claims if is_rejected(claim)]
        if rejections:
            examples = "; ".join(f"“{claim.text.strip()[:MAX_NAMED_CHARS]}”" for claim in rejections[:MAX_NAMED])
            values = {"sentences": _count_of(len(rejections), total), "named": examples}
            notice = Notice("sentences.no_support", "a judge finds no support in the pages for {sentences}: {named}", **values)
            await warn("not_supported", notice)
        if review.dropped:
            count = _count_of(len(review.dropped), total)
            rejected = Notice("sentences.rejected", "{sentences} left out: a judge finds no support for them", sentences=count)
            unread = Notice("sentences.not_found", "{sentences} left out: rules do not find them in the pages", sentences=count)
            await warn("left_out", rejected if review.judges else unread)
        if review.strict and not review.judges:
            unjudged = Notice(
                "judge.none", "no judge read this answer: what rules find in the pages is kept, and that is all they can do"
            )
            await warn("not_judged", unjudged)
        if review.strict and not review.proof.passed:
            await self.context.emit(AnswerChecked(review))
            cause = Notice("sentences.none", "none of its {n} sentences is found in the pages that were read", n=total)
            if not total:
                cause = Notice("sentences.unchecked", "nothing in it could be checked")
            fix = "ask without --strict to see it, try another model with -m, or ask more narrowly"
            failure = Notice("answer.not_verified", "there is no answer that could be verified")
            raise VerificationError(failure, cause=cause, fix=fix)

    async def _warn_about_citations(self, check: AnswerCheck, clean: str) -> None:
        warn = self.context.warn
        if check.stream.dropped:
            numbers = ", ".join(f"[{n}]" for n in sorted(check.stream.dropped))
            unknown = Notice(
                "citation.unknown", "the model cited {numbers}, which names no page that was read; removed", numbers=numbers
            )
            await warn("unknown_citation", unknown)
        if check.stream.removed:
            hosts = ", ".join(name_hosts(check.stream.removed))[:300]  # not whole: an address can spell private text
            somewhere = Notice(
                "address.unknown_at",
                "the model wrote an address at {hosts} that is on no page that was read; removed",
                hosts=hosts,
            )
            nowhere = Notice("address.unknown", "the model wrote an address that is on no page that was read; removed")
            await warn("unknown_address", somewhere if hosts else nowhere)
        if not extract_citation_markers(clean):
            await warn("no_citation", Notice("citation.none", "the answer cites none of the pages that were read"))


def _count_of(count: int, total: int) -> str:
    if total == 1:
        return Notice("sentences.of_one", "{n} of 1 sentence", n=count)
    return Notice("sentences.of", "{n} of {m} sentences", n=count, m=total)


def _describe_standing(source: Source) -> str:
    """That a paper was retracted or is doubted, with the address of the notice where it is known; "" for any other."""
    number, standing = source.number, read_standing(source)
    address = source.imprint.paper.notice if source.imprint.paper else ""
    if standing == "retracted" and address:
        return Notice("source.retracted_by", "[{n}] was retracted ({address})", n=number, address=address)
    if standing == "retracted":
        return Notice("source.retracted", "[{n}] was retracted", n=number)
    if standing == "concern" and address:
        return Notice("source.concern_by", "[{n}] has an expression of concern ({address})", n=number, address=address)
    return Notice("source.concern", "[{n}] has an expression of concern", n=number) if standing == "concern" else ""
