// Uses the application of test/fixtures/web-apps/app.ts in a browser, as a person does.
import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Page } from 'playwright-core'
import type { Test } from 'tap'
import { BLOCK_BYTES, createBlocks, hashBlocks } from '../../fixtures/web-apps/blocks.ts'
import { createTempDir } from '../../support/temp-dir.ts'
import { LONG_DEADLINE_MS } from '../../support/wait-until.ts'

/** Calls a function of page.js. */
export const call = <T = unknown>(page: Page, name: string, ...args: unknown[]): Promise<T> =>
  page.evaluate(`window.app.${name}(${args.map((arg) => JSON.stringify(arg)).join(', ')})`)

export const say = (page: Page, text: string): Promise<unknown> =>
  page.evaluate(`window.app.socket.send(${JSON.stringify(text)})`)

/** Waits for an expression on the values of page.js, such as `app.isChatClosed`. */
export async function waitFor(page: Page, expression: string): Promise<void> {
  await page.waitForFunction(expression)
}

const includes = (list: string, text: string) => `app.${list}.includes(${JSON.stringify(text)})`

export async function testChat(t: Test, page: Page): Promise<void> {
  const other = await page.context().newPage()
  await other.goto(new URL('/', page.url()).href)
  await Promise.all([call(page, 'openChat', '/chat'), call(other, 'openChat', '/chat')])
  await say(page, 'from the first page')
  await waitFor(other, includes('messages', 'from the first page'))
  await say(other, 'ünïcödé from the second page')
  await waitFor(page, includes('messages', 'ünïcödé from the second page'))
  t.pass('messages in both directions')
  await other.close()
}

/** Each event arrives before the next one is sent: nothing buffers the stream. */
export async function testFeed(t: Test, page: Page): Promise<void> {
  await call(page, 'openFeed')
  for (const text of ['one', 'two', 'three']) {
    t.match(await call(page, 'request', `/publish?text=${text}`, { method: 'POST' }), /^200 /)
    await waitFor(page, includes('events', text))
  }
  t.same(await page.evaluate('app.events'), ['ready', 'one', 'two', 'three'])
  await page.evaluate('app.source.close()')
}

/** Downloads with the browser's own download, and uploads a file from disk. @param count of blocks of 1 MiB */
export async function testTransfers(t: Test, page: Page, count: number): Promise<void> {
  page.setDefaultTimeout(LONG_DEADLINE_MS)
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.evaluate(`location.href = '/download?blocks=${count}'`),
  ])
  const hash = createHash('sha256')
  await pipeline(createReadStream(await download.path()), hash)
  t.equal(hash.digest('hex'), hashBlocks(count), `${count} MiB downloaded`)
  await download.delete()

  const file = join(createTempDir(t, 'upload'), 'blocks')
  await pipeline(Readable.from(createBlocks(count)), createWriteStream(file))
  await page.setContent('<input type="file">')
  await page.setInputFiles('input', file)
  const expected = { bytes: count * BLOCK_BYTES, sha256: hashBlocks(count) }
  t.same(await call(page, 'upload'), expected, `${count} MiB uploaded`)
}

/** @param page of a context with the credentials `ada` and `lovelace` */
export async function testBasicAuth(t: Test, page: Page): Promise<void> {
  const url = new URL('/private', page.url()).href
  t.equal((await page.goto(url))?.status(), 200)
  t.equal((await page.reload())?.status(), 200, 'after a reload')
  t.equal(await page.textContent('h1'), 'Hello ada')
}

/** The application sees its own cookies, also the one with a Domain attribute, and no others. */
export async function testCookies(t: Test, page: Page): Promise<void> {
  const { origin } = new URL(page.url())
  await page.goto(`${origin}/sign-in`)
  await page.reload()
  await page.goto(`${origin}/whoami`)
  const { cookie } = JSON.parse((await page.textContent('body')) ?? '')
  const names = String(cookie).split('; ')
  t.same(names.sort(), ['app_session=ada', 'theme=dark', 'with_domain=yes'])
  const visible = await page.evaluate('document.cookie')
  t.match(visible, /theme=dark/)
  t.notMatch(visible, /app_session|boxwood/)
}
