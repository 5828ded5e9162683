"""Passes as Tavily.

search    search and extract
crawl     a site read or listed from one page on
research  reports
"""
