"""Words and marks that show what kind of thing a question asks for. Data.

Each entry is a word or a phrase; `*` stands for the rest of a word. Strong words decide by themselves, weak ones add up.
English, German, French and Spanish, since people ask in theirs. Patterns are for identifiers and shapes.
"""

from __future__ import annotations

STRONG, WEAK = 4.0, 2.4
FURTHER = 0.8  # of a kind's other words, each

WORDS: tuple[tuple[str, float, str], ...] = (
    ("trials", STRONG,
        """clinical trial*, clinical stud*, randomized trial*, randomised trial*, placebo-controlled, double-blind, in a trial,
        trial results, recruiting, enrolling, enrolment criteria, eligibility criteria, phase 1, phase 2, phase 3, phase 4,
        phase i, phase ii, phase iii, phase iv, phase-2-studie, phase-3-studie, klinische studie*, klinischen studie*, essai
        clinique*, essais cliniques, ensayo clínico*, ensayos clínicos, trials for, trials test, trials with, trial of,
        trial for"""),
    ("medicine", WEAK,
        """symptom*, treated, treatment of, treatment for, recommended treatment, cure for, disease*, syndrome*, disorder*,
        cancer*, tumor*, tumour*, carcinoma*, melanoma*, leukemia, leukaemia, dose, doses, dosage*, drug interaction*,
        medication*, medicine for, vaccin*, infection*, virus*, covid*, long covid, influenza, bacteri*, antibiotic*,
        pneumonia, migraine*, headache*, allerg*, asthma, hay fever, diabet*, insulin, blood pressure, hypertension,
        cholesterol, heart attack, heart failure, stroke, kidney*, liver, lung*, pregnan*, breastfeeding, surgery, patient*,
        clinical, therap*, chemo*, prognos*, diagnos*, mortality, side effect*, overdose*, contraindicat*, paracetamol,
        acetaminophen, ibuprofen, aspirin, metformin, penicillin, statin*, inhibitor*, vitamin*, fracture*, insomnia,
        depression, anxiety disorder, adhd, autism, dementia, alzheimer*, parkinson*, epilep*, mutation*, protein*, gene
        therapy, fatigue, inflammat*, obesity, arthritis, anaemia, anemia, sepsis, hepatitis, hiv, malaria, tuberculosis,
        efficacy, adults with, nebenwirkung*, behandlung von, therapie der, therapie von, krankheit*, hilft gegen,
        schmerzen, medikament*, impfung*, impfstoff*, heuschnupfen, borreliose, erkältung, traitement*, maladie*, symptôme*,
        médicament*, douleur*, tratamiento*, enfermedad*, síntoma*, medicamento*, vacuna*"""),
    ("papers", STRONG,
        """paper on, papers on, papers about, survey paper, peer-reviewed, systematic review*, literature review, scholarly, in
        the literature, academic literature, recent research, research on, research say*, research show*, citation count,
        cited by, et al, journal article*, preprint*, doi, co-authored, publications by, publications on, scientific
        evidence, evidence for the, original article, meta-analysis, meta-analyses, welche studien, wissenschaftliche*,
        études scientifiques, estudios científicos"""),
    ("papers", WEAK,
        "paper, papers, study, studies, journal, citation*, article on, theorem, studien, forschung, étude*, estudio*"),
    ("preprints", 6.0, "arxiv"),
    ("data", 3.2, "data set*, dataset*, zenodo, open data, datensatz, datensätze, jeu de données, conjunto de datos"),
    ("python packages", 5.0, "pip install, pip3 install, pypi, python versions does, python package, python library"),
    ("JavaScript packages", 5.0, "npm, yarn add, node package, javascript library"),
    ("Rust packages", 5.0, "cargo add, cargo install, crate, crates, crates.io, rust library"),
    ("programming", 3.2,
        """how do i write, in python, in javascript, in java, in typescript, in bash, in c++, in c#, in rust, in golang, in go,
        in sql, in css, in php, in ruby, in kotlin, in swift, in pandas, for loop, while loop, segmentation fault, stack
        trace, traceback, null pointer, git undo, git reset, git rebase, git merge, git commit, in git, regex, regular
        expression, flexbox, spring boot, sql query, unit test, compile error, syntax error, merge conflict, line by line,
        docker compose, dockerfile, kubectl, async await, set -euo"""),
    ("programming", WEAK,
        """python, javascript, typescript, java, bash, sql, css, html, php, pandas, django, flask, pointer, function, method,
        array, dictionary, string, exception, variable, class, compiler, loop, api call, json, csv, shell script, linux
        command"""),
    ("repositories", STRONG,
        """github, gitlab, codeberg, repository, repositories, repo, repos, open source, open-source, source code, the code of,
        its code, self-hosted, selfhosted, stars, quelloffen*, logiciel libre, código abierto"""),
    ("repositories", WEAK,
        """implementation of, command line tool*, command-line tool*, cli tool*, tool written in, tools written in, written in
        rust, written in go, open issues, pull request*, awesome list"""),
    ("discussions", 5.0, "hacker news, ask hn, show hn, reddit, forum"),
    ("discussions", 3.2,
        """what do people think, what do people say, what do developers say, what do developers think, what do users say,
        opinion on, opinions on, experience with, experiences with, has anyone, does anyone, people's thoughts, thoughts on,
        worth it, worth switching, worth learning, worth buying, worth using, pros and cons, recommendation*, according to
        developers, according to users, versus, vs, regret*, should i, erfahrungen mit, lohnt sich, avis sur, opiniones
        sobre, merece la pena"""),
    ("news", STRONG,
        """news, latest news, breaking, headline*, yesterday, this week, this morning, last night, last week, right now, is
        going on, happened in, gestern, heute, diese woche, nachrichten, aktuelle lage, dernières nouvelles, aujourd'hui,
        actualité*, noticia*, ayer, hoy"""),
    ("news", 2.6,
        """today, tonight, announce*, ceasefire, current state of, election*, wahl, abstimmung, wildfire*, earthquake in,
        recently, this month, this quarter, earnings, strikes in, protests, on monday, on tuesday, on wednesday, on
        thursday, on friday, on saturday, on sunday, récent*, reciente*, grève*, huelga*"""),
    ("places", STRONG,
        """coordinates of, latitude, longitude, postal code, postcode, zip code, address of, near, nearest, nearby, where is,
        where are, where exactly, located, in which district, in which county, in which province, in which state, in which
        region, what county, what district, what region, map of, get to, directions to, wo liegt, wo ist, wo befindet, wo
        finde, où se trouve, où est, dónde está, dónde queda, adresse"""),
    ("places", WEAK,
        """museums in, restaurants in, hotels in, pharmacies, hospitals in, parks in, cafés in, schools in, churches in,
        supermarkets in, things to see in, museen in, apotheke*, musées à, museos en, train station, bus stop"""),
    ("books", STRONG,
        """isbn, novel, novels, the book, books by, books about, books on, author of, who wrote, first edition, publisher of,
        which publisher, paperback, reading order, what order should i read, trilogy, bücher von, das buch, roman von, der
        roman, ein roman, romane, livre de, livres, roman de, novela*, libro*, autor von, auteur de"""),
    ("books", WEAK, "book, books, buch, bücher, livre, written by, bestseller*, neuerscheinung*, memoir*, biography of"),
    ("archived pages", STRONG,
        """archived version, archived copy, archived page, wayback, old version of http*, deleted page, cached copy, cached
        version, no longer exists, early website, homepage of, look like in, dead link, was on"""),
    ("archives", STRONG,
        """internet archive, archive.org, public domain, scanned, scans, old time radio, old magazines, old films, old
        recordings, old software, silent film*, radio drama*, vintage, bootleg*, live recordings, out of print, wax
        cylinder*, shellac"""),
)  # fmt: skip

PATTERNS: tuple[tuple[str, float, str], ...] = (
    ("trials", 6.0, r"\bNCT\d{8}\b"),
    ("medicine", 6.0, r"\bPMID:? ?\d+|\bPMC\d{4,}"),
    ("medicine", WEAK, r"\b\w{4,}(?:itis|osis|ectomy|mycin|cillin|azole|prazole|sartan|gliptin|glutide|emia|pathy)\b"),
    ("trials", WEAK, r"\b\w{3,}(?:mab|tinib|glutide|patide)\b"),
    ("preprints", 6.0, r"\b\d{4}\.\d{4,5}(?:v\d+)?\b"),
    ("papers", 6.0, r"\b10\.\d{4,9}/\S+"),
    ("papers", WEAK, r"\b[A-Z][a-z]+ (?:and [A-Z][a-z]+ |et al\.? )?\(?(?:19|20)\d\d\)?(?= \w+|$)"),
    ("papers", STRONG, r"[\"“][^\"”]{12,}[\"”].*\b(?:published|cited|paper|doi)\b"),
    ("programming", STRONG, r"`[^`]+`|\b\w+(?:Error|Exception)\b|[=!]==|\w\(\)|\b\w+::\w+|#include"),
    ("repositories", STRONG, r"(?<![\w/.:])[A-Za-z][\w-]+/[A-Za-z][\w.-]+(?![\w/])"),
    ("python packages", WEAK,
        r"\b(?:version|release|licen[sc]e) of (?:the )?(?:django|numpy|flask|requests|\w+ (?:library|package))\b"),
    ("books", 6.0, r"\b97[89][\d-]{10,14}\b"),
    ("archived pages", STRONG,
        r"\b[\w-]+\.(?:com|org|net|edu|gov|co\.uk|de|fr|io)\b.*\b(?:19[89]\d|20[01]\d)\b|"
        r"\b(?:archived|old|deleted|copy|snapshot|cached)\b.*(?:https?://|\b[\w-]+\.(?:com|org|net|edu|gov|de|fr|uk)\b)"),
    ("archives", WEAK, r"\b(?:magazines?|concerts?|films?|recordings?|radio)\b.*\b19\d\d(?:s|\b)"),
    ("news", STRONG, r"ニュース|新闻|最新"),
)  # fmt: skip
