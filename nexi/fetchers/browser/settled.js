js:() => {
  const now = performance.now(), length = document.body ? document.body.innerText.trim().length : 0;
  if (window.__length !== length) { window.__length = length; window.__since = now; }
  return now > %d || (document.readyState === 'complete' && now - window.__since > (length ? %d : %d));
}
