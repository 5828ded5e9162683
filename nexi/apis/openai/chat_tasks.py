"""Messages that need no search: what a chat program asks about a conversation (a title, tags, follow-up questions, search
queries, the rest of a sentence), and small talk.

The contracts of OpenAI ask here before they start a run. A task goes to the plain model; without one, the few that every chat
program shows have a simple answer. Which program sent it is not known here: the words decide.
"""

from __future__ import annotations

import json
import re

from nexi.apis.openai.shapes import ModelRequest
from nexi.app import Nexi
from nexi.types import Message, Reply

__all__ = ["reply_without_search"]

MAX_TASK_TOKENS = 1000
MAX_TITLE_WORDS = 6
SMALL_TALK_REPLY = "I answer questions from pages that I read, and name them as sources. What would you like to know?"

_TASK = re.compile(r"\s*#{1,4}\s*task\s*:", re.IGNORECASE)
_CHAT = re.compile(r"<chat_history>|</?type>|autocompletion system", re.IGNORECASE)
_TITLE_TASK = re.compile(
    r"(?:generate|provide|write|create|give|suggest|summari[sz]e)\b[^.?!\n]{0,120}\btitle\b"
    r"[^?!]{0,160}\b(?:conversation|chat|discussion|dialog(?:ue)?|messages?)\b",
    re.IGNORECASE,
)
_OTHER_TASK = re.compile(
    r"\s*your task is to [^.]{0,120}\bemoji\b|\s*you have been provided with a set of responses from various models",
    re.IGNORECASE,
)
_TOOL_CHOICE = re.compile(r"\s*available tools:.*\"tool_calls\"|\s*available tools:.*functionName", re.IGNORECASE | re.DOTALL)
_HISTORY = re.compile(r"<chat_history>(.*?)</chat_history>", re.DOTALL | re.IGNORECASE)
_SPEAKER = re.compile(r"^\s*(user|assistant|human|ai)\s*:\s*", re.IGNORECASE | re.MULTILINE)

_GREETING = (
    r"hello|hi|hiya|hey|howdy|greetings|good (?:morning|afternoon|evening|day|night)|hallo|servus|moin|"
    r"guten (?:morgen|tag|abend)|bonjour|bonsoir|salut|hola|buenos d[ií]as|buenas (?:tardes|noches)|ciao|buongiorno|"
    r"ol[aá]|привет|здравствуйте|こんにちは|你好|안녕하세요"
)
_THANKS = r"(?:many )?thanks|thank you|thx|cheers|danke|vielen dank|merci|gracias|grazie|obrigad[oa]|спасибо|ありがとう|谢谢"
_ASIDE = (
    r"how are you|how is it going|how do you do|what'?s up|who are you|what are you|what can you do|nice to meet you|"
    r"good ?bye|bye(?: bye)?|see you|ok(?:ay)?|great|nice|cool|perfect|got it|wie geht(?:'s| es dir)|tsch[uü]ss"
)
_FILLING = r"there|nexi|again|everyone|all|so much|very much|a lot|doing|today|then|later|for (?:the|your) help"
_SMALL_TALK = re.compile(rf"(?:(?:{_GREETING}|{_THANKS}|{_ASIDE})(?: (?:{_FILLING}))*(?: |$))+")


def is_chat_task(text: str, instructions: str = "") -> bool:
    """Whether a message asks for something about a chat, as chat programs do without showing it to their users."""
    head = text[:500].lstrip()
    return bool(
        (_TASK.match(head) and _CHAT.search(text))
        or _TITLE_TASK.match(head)
        or _OTHER_TASK.match(head)
        or _TOOL_CHOICE.match(instructions)
    )


def is_small_talk(text: str) -> bool:
    """Whether a message is a greeting, thanks or the like, and nothing else."""
    if len(text) > 100:
        return False
    words = re.sub(r"[^\w']+", " ", text.lower()).strip()
    return bool(_SMALL_TALK.fullmatch(words))


async def reply_without_search(nexi: Nexi, request: ModelRequest) -> Reply | None:
    """The reply to a message that needs no search; None for a question, and where a function is forced. Raises LLMError.

    A client that knows its message to be a task says so: then `searches` is False.
    """
    question, instructions = request.run.question, request.run.system_prompt
    if request.function:
        return None
    if request.searches and is_small_talk(question):
        return Reply(SMALL_TALK_REPLY)
    if request.searches and not is_chat_task(question, instructions):
        return None
    model = None if request.run.is_local else nexi.plain_model()
    if model is None:
        return Reply(_simple_task_reply(question, instructions))
    system = [Message("system", instructions)] if instructions else []
    messages = [*system, *request.session.messages, Message("user", question)]
    return await model.reply(messages, max_tokens=request.max_tokens or MAX_TASK_TOKENS)


def _simple_task_reply(task: str, instructions: str) -> str:
    """A reply without a model, in the JSON that the task shows as its output."""
    if _TOOL_CHOICE.match(instructions):
        return json.dumps({"tool_calls": []})
    # what the user said last in the history that the task quotes, as one line
    history = _HISTORY.search(task)
    parts = _SPEAKER.split(history[1] if history else "")
    texts = [text for who, text in zip(parts[1::2], parts[2::2], strict=False) if who.lower() in ("user", "human")]
    words = " ".join((texts[-1] if texts else "").split())[:300]
    if '"follow_ups"' in task:
        return json.dumps({"follow_ups": []})
    if '"queries"' in task:
        return json.dumps({"queries": [words] if words else []}, ensure_ascii=False)
    if '"tags"' in task:
        return json.dumps({"tags": ["General"]})
    title = " ".join(words.split()[:MAX_TITLE_WORDS]).rstrip("?!.,;:") or "New chat"
    if '"title"' in task:
        return json.dumps({"title": title}, ensure_ascii=False)
    return json.dumps({"text": ""}) if '"text"' in task else title
