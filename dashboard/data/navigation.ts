// The location of the page, and links that are followed without a request for another document.
import { signal } from '@preact/signals'
import { parseRoute } from './routes.ts'

/** The URL of the coordinator, with a slash at its end. */
let base = ''

/** The path relative to the base, without the query. */
export const path = signal('')
/** The query of the location, such as `?from=…`. */
export const query = signal('')
/** Counts navigations, also those to the same path. */
export const navigations = signal(0)

/** The next navigation loads the document: the coordinator has a newer build of the page. */
let loadsDocument = false
export function loadDocumentAtNextNavigation(): void {
  loadsDocument = true
}

/** An absolute URL of a path relative to the base. */
export const resolveUrl = (relative: string): URL => new URL(relative, base)

/** The path of a URL relative to the base. Null: the URL is not below the base. */
const getRelativePath = (url: URL): string | null => {
  const { origin, pathname } = new URL(base)
  return url.origin === origin && url.pathname.startsWith(pathname)
    ? url.pathname.slice(pathname.length)
    : null
}

export function startNavigation(): void {
  // The base of the document is relative to its location, which changes with each navigation.
  base = document.baseURI
  const element = document.querySelector('base')
  if (element !== null) element.href = base
  const update = () => {
    readLocation()
    navigations.value += 1
  }
  update()
  window.addEventListener('popstate', update)
  document.addEventListener('click', (event) => {
    const link = event.target instanceof Element ? event.target.closest('a') : null
    if (link === null || event.defaultPrevented || event.button !== 0) return
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
    if (link.target !== '' || link.hasAttribute('download') || !canFollow(new URL(link.href))) return
    event.preventDefault()
    navigate(link.href)
  })
}

/** Other pages of the coordinator, such as /docs, are documents of their own. */
function canFollow(url: URL): boolean {
  const relative = getRelativePath(url)
  return relative !== null && parseRoute(relative).page !== 'unknown' && url.hash === ''
}

/** @param target relative to the base, or absolute */
export function navigate(target: string): void {
  const url = resolveUrl(target)
  if (loadsDocument) {
    location.assign(url)
    return
  }
  history.pushState(null, '', url)
  readLocation()
  navigations.value += 1
}

/** Changes the query of the page, which stays the same page with the same focus. */
export function replaceQuery(params: Record<string, string>): void {
  const search = new URLSearchParams(params).toString()
  history.replaceState(null, '', `${location.pathname}${search && `?${search}`}`)
  readLocation()
}

/** Changes parameters of the query, as replaceQuery(). null removes one. */
export function changeQuery(changes: Readonly<Record<string, string | null>>): void {
  const params = new URLSearchParams(location.search)
  const before = params.toString()
  for (const [name, value] of Object.entries(changes))
    if (value === null) params.delete(name)
    else params.set(name, value)
  if (params.toString() !== before) replaceQuery(Object.fromEntries(params))
}

/** Another name of the page, which stays the same page with the same focus. @param target relative to the base */
export function replacePath(target: string): void {
  history.replaceState(null, '', resolveUrl(target))
  readLocation()
}

function readLocation(): void {
  path.value = getRelativePath(new URL(location.href)) ?? ''
  query.value = location.search
}
