"""The citation functions of the first version under their old address; `nexi.answers.citations` has the code."""

from nexi.answers.citations import (
    add_citations_to_answer,
    extract_citation_markers,
    extract_citations_from_tool_result,
    format_citations_section,
    map_markers_to_urls,
    process_answer_with_citations,
)

__all__ = [
    "add_citations_to_answer",
    "extract_citation_markers",
    "extract_citations_from_tool_result",
    "format_citations_section",
    "map_markers_to_urls",
    "process_answer_with_citations",
]
