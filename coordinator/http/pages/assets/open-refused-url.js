// Part of each page. Cookies that pages of other hosts have set may be too large for some paths only, such as those of the API or of
// scripts. Opens the URL of such a request: the page of the response deletes the cookies, and returns to this page.
new PerformanceObserver((list) => {
  const refused = list.getEntries().find(({ responseStatus }) => responseStatus === 431)
  if (refused === undefined || new URL(refused.name).origin !== location.origin) return
  location.assign(`${refused.name}#return=${encodeURIComponent(location.href)}`)
}).observe({ type: 'resource', buffered: true })
