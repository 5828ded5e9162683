"""The citation functions of the first version under their old address; `nexi.answers.citations` has the code."""

from nexi.answers.citations import add_citations_to_answer as add_citations_to_answer
from nexi.answers.citations import extract_citation_markers as extract_citation_markers
from nexi.answers.citations import extract_citations_from_tool_result as extract_citations_from_tool_result
from nexi.answers.citations import format_citations_section as format_citations_section
from nexi.answers.citations import map_markers_to_urls as map_markers_to_urls
from nexi.answers.citations import process_answer_with_citations as process_answer_with_citations
