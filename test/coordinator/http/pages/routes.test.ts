// The pages over HTTP: content by Accept, security headers, files for the browser.

import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { gunzipSync } from 'node:zlib'
import t from 'tap'
import { OPEN_REFUSED_URL } from '../../../../coordinator/http/large-requests.ts'
import { VERSION } from '../../../../shared/version.ts'
import { startTestCoordinator } from '../../../support/coordinator.ts'
import { createTestSession } from '../../../support/session.ts'

/** What Chromium and Firefox send for a page. */
const BROWSER = { headers: { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }, key: null }
/** The URLs that a page loads when it is opened. */
const listLoadedUrls = (html: string) =>
  [...html.matchAll(/<(?:link|script|img)\b[^>]*\b(?:href|src)="([^"]*)"/g)].map(([, url]) => url ?? '')

t.test('GET / shows a page with the first steps to a browser', async (t) => {
  const { send, url, key, api } = await startTestCoordinator(t, {
    env: { BOXWOOD_PUBLIC_URL: 'https://boxes.example.com' },
  })
  const page = await send('GET', '/', undefined, BROWSER)
  t.equal(page.status, 200)
  t.equal(page.headers.get('content-type'), 'text/html; charset=utf-8')
  for (const text of [
    VERSION,
    'href="docs"',
    'export BOXWOOD_URL=https://boxes.example.com\n',
    'BOXWOOD_API_KEY',
    'box install',
    'box login https://boxes.example.com\n',
    'href="docs/guides/install"',
  ])
    t.match(page.text, text)
  const [box] = (await api('GET', '/boxes')).json.boxes
  t.notMatch(page.text, key)
  t.notMatch(page.text, box.hostname)
  t.match(page.headers.get('vary'), 'accept')

  const head = await fetch(url, {
    method: 'HEAD',
    headers: { ...BROWSER.headers, 'accept-encoding': 'identity' },
  })
  t.equal(head.status, 200)
  t.equal(head.headers.get('content-length'), String(Buffer.byteLength(page.text)))
})

t.test('behind a proxy that adds a path, all addresses have the path', async (t) => {
  const publicUrl = 'https://example.com/boxwood'
  const coordinator = await startTestCoordinator(t, { env: { BOXWOOD_PUBLIC_URL: publicUrl } })
  const { send, api, url } = coordinator
  const page = await send('GET', '/', undefined, BROWSER)
  t.match(page.text, `box login ${publicUrl}\n`)
  const visitor = { key: null }
  t.match((await send('GET', '/', undefined, visitor)).json, { docs: `${publicUrl}/docs` })
  t.match((await send('GET', '/openapi.json', undefined, visitor)).json, { servers: [{ url: publicUrl }] })
  t.match((await api('GET', '/me')).json, { edge: { url: publicUrl } })
  const machine = await api('POST', '/machines', {}, await createTestSession(coordinator))
  t.match(machine.json.command, `curl -fsSL ${publicUrl}/install.sh | sh`)
  const signIn = `/share/sign-in?slug=fig&path=%2Fa&state=${'0'.repeat(64)}`
  // fetch() replaces these headers.
  const navigation = { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }
  for (const path of [signIn, '/share/wake?slug=fig&path=%2Fa']) {
    const [response] = (await once(get(url + path, { headers: navigation }), 'response')) as [IncomingMessage]
    response.resume()
    t.equal(response.headers.location, `/boxwood/sign-in?${new URLSearchParams({ next: `/boxwood${path}` })}`)
  }
})

t.test('GET / is a JSON document for other clients', async (t) => {
  const { send, url } = await startTestCoordinator(t)
  for (const headers of [{}, { accept: '*/*' }, { accept: 'application/json' }]) {
    const { status, json } = await send('GET', '/', undefined, { headers, key: null })
    t.equal(status, 200)
    t.same(json, {
      name: 'boxwood',
      version: VERSION,
      apiVersion: '1',
      docs: `${url}/docs`,
      openapi: `${url}/openapi.json`,
    })
  }
  t.match((await send('POST', '/')).json, { error: 'not_found', message: /The API reference is at \/docs\./ })
})

t.test('the pages load nothing from other hosts', async (t) => {
  const { send } = await startTestCoordinator(t)
  for (const path of ['/', '/docs']) {
    const { status, headers, text } = await send('GET', path, undefined, BROWSER)
    t.equal(status, 200)
    const policy = new Map(
      (headers.get('content-security-policy') ?? '').split('; ').map((directive) => {
        const [name = '', ...sources] = directive.split(' ')
        return [name, sources] as const
      }),
    )
    t.same(policy.get('default-src'), ["'none'"])
    for (const [name, sources] of policy)
      for (const source of sources)
        t.ok(
          [
            "'none'",
            "'self'",
            ...(name === 'img-src' ? ['data:'] : []),
            ...(name === 'script-src' ? [OPEN_REFUSED_URL.source] : []),
          ].includes(source),
          `${name} ${source}`,
        )
    for (const directive of ['base-uri', 'form-action', 'frame-ancestors'])
      t.same(policy.get(directive), ["'none'"], directive)
    t.ok(text.includes(OPEN_REFUSED_URL.element))
    t.notMatch(
      text.replace(OPEN_REFUSED_URL.element, ''),
      /<style|<script(?![^>]* src=)| style=| on\w+=/,
      'nothing inline, which the policy would block',
    )

    const urls = listLoadedUrls(text).filter((url) => !url.startsWith('data:'))
    t.ok(urls.length > 0)
    for (const url of urls) {
      t.notMatch(url, /^(\w+:|\/)/, 'relative, so that a proxy may add a path')
      const file = await send('GET', `/${url}`, undefined, { key: null })
      t.equal(file.status, 200, url)
      t.equal(file.headers.get('x-content-type-options'), 'nosniff')
      const type = url.endsWith('.css') ? 'text/css; charset=utf-8' : 'application/javascript; charset=utf-8'
      t.equal(file.headers.get('content-type'), type)
    }
  }
  t.equal((await send('GET', '/docs/', undefined, BROWSER)).status, 200, 'redirects to /docs')
})

t.test('the files of the API reference are compressed and cached', async (t) => {
  const { url } = await startTestCoordinator(t)
  const path = `${url}/docs/swagger-ui-bundle.js`
  const plain = await fetch(path, { headers: { 'accept-encoding': 'identity' } })
  t.equal(plain.headers.get('content-encoding'), null)
  const bytes = Buffer.from(await plain.arrayBuffer())
  const compressed = await fetch(path, { headers: { 'accept-encoding': 'gzip' } })
  t.equal(compressed.headers.get('content-encoding'), 'gzip')
  t.ok(Buffer.from(await compressed.arrayBuffer()).equals(bytes))
  t.throws(() => gunzipSync(bytes), 'the plain file is not compressed')

  const etag = compressed.headers.get('etag') ?? ''
  // As a browser does: without this header, fetch() adds no-cache.
  const headers = { 'cache-control': 'max-age=0' }
  const cached = await fetch(path, { headers: { ...headers, 'if-none-match': etag } })
  t.equal(cached.status, 304)
  const changed = await fetch(path, { headers: { ...headers, 'if-none-match': 'W/"other"' }, method: 'HEAD' })
  t.equal(changed.status, 200)
})

t.test('the guides are pages and text, whose links lead to pages and headings', async (t) => {
  const { send } = await startTestCoordinator(t)
  const get = (path: string) => send('GET', path, undefined, { key: null })
  const home = await send('GET', '/', undefined, BROWSER)
  const urls = [...home.text.matchAll(/href="(docs\/guides\/[^"]+)"/g)].map(([, url = '']) => url)
  t.ok(urls.length > 50)
  const pages = new Map<string, string>()
  for (const url of urls) {
    const { status, headers, text } = await get(`/${url}`)
    t.equal(status, 200, url)
    t.equal(headers.get('content-type'), 'text/html; charset=utf-8')
    t.match(headers.get('content-security-policy'), /default-src 'none'/)
    t.match(text, /<h1 id="/)
    pages.set(`/${url}`, text)
    const source = await get(`/${url}.md`)
    t.equal(source.headers.get('content-type'), 'text/plain; charset=utf-8')
    t.match(source.text, /^# /)
  }
  const problems: string[] = []
  const loaded = new Set<string>()
  for (const [path, html] of pages)
    for (const [, link = ''] of html.matchAll(/(?:href|src)="([^"]*)"/g)) {
      if (/^(https?|data):/.test(link)) continue
      const { pathname, hash } = new URL(link.replaceAll('&amp;', '&'), `http://host${path}`)
      const target = pages.get(pathname)
      if (target === undefined) loaded.add(pathname)
      else if (hash !== '' && !target.includes(` id="${decodeURIComponent(hash.slice(1))}"`))
        problems.push(`${path}: ${link}`)
    }
  t.same(problems, [])
  for (const path of loaded) t.equal((await get(path)).status, 200, path)
})

t.test('an address of a guide that was cut off leads to the first one', async (t) => {
  const { url } = await startTestCoordinator(t)
  for (const path of ['/docs/guides', '/docs/guides/'])
    t.equal((await fetch(`${url}${path}`)).url, `${url}/docs/guides/cli`, path)
})

t.test('only the listed files are served', async (t) => {
  const { send } = await startTestCoordinator(t)
  for (const path of [
    '/docs/index.html',
    '/docs/guides/README',
    '/docs/guides/README.md',
    '/docs/guides/..%2f..%2fpackage.json',
    '/docs/package.json',
    '/docs/..%2froutes.ts',
    '/docs/%2e%2e/server.ts',
  ])
    t.equal((await send('GET', path, undefined, { key: null })).json?.error, 'not_found', path)
})
