// The script of the page for a request that is too large. Pages of other hosts of the site can set cookies for this host, which
// the browser would send with each request. Deletes the largest ones, and opens the URL again. Browsers show neither the host nor
// the path of a cookie, so all of them are tried.
const KEPT_CHARS = 8192

const size = () => document.cookie.length

/** The beginnings of a list of segments, such as `/`, `/a` and `/a/`. */
function listPaths() {
  const segments = location.pathname.split('/').slice(1)
  const parents = segments.map((_, index) => `/${segments.slice(0, index).join('/')}`)
  return [...new Set([...parents, ...parents.map((path) => `${path}/`), location.pathname])]
}

/** The host, and the domains above it. Empty: a cookie of this host only. */
function listDomains() {
  const labels = location.hostname.split('.')
  return ['', ...labels.map((_, index) => `; Domain=${labels.slice(index).join('.')}`)]
}

function deleteCookie(name) {
  for (const path of listPaths())
    for (const domain of listDomains())
      for (const flags of ['', '; Secure', '; Secure; Partitioned']) {
        // A browser ignores a cookie with neither a name nor a value.
        const expired = `${name}=x; Max-Age=0; Path=${path}${domain}${flags}`
        // biome-ignore lint/suspicious/noDocumentCookie: the Cookie Store API exists over https only.
        document.cookie = expired
      }
}

/** The page that has requested the URL, or the URL itself. */
function openAgain() {
  const page = /^#return=(.*)$/.exec(location.hash)?.[1]
  const url = page === undefined ? null : new URL(decodeURIComponent(page), location.origin)
  if (url?.origin === location.origin) location.replace(url)
  else location.reload()
}

const wasTooLarge = size() > KEPT_CHARS
const cookies = document.cookie.split('; ').sort((a, b) => b.length - a.length)
for (const cookie of cookies) {
  if (size() <= KEPT_CHARS) break
  deleteCookie(cookie.includes('=') ? cookie.slice(0, cookie.indexOf('=')) : '')
}
// Otherwise the URL is too long, or the cookies cannot be deleted by a script.
if (wasTooLarge && size() <= KEPT_CHARS) openAgain()
