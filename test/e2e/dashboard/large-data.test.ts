// Pages with much data: 100,000 commands, a line of 1 MiB, a directory of a million entries, and names of 255 bytes. The
// machine is fake, and its agent has the data in memory.
import { sql } from 'kysely'
import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import type { FileEntry } from '../../../shared/api/files.ts'
import { startBoxWithFakeAgent } from '../../support/box-with-fake-agent.ts'
import { NO_BROWSER, startBrowser } from '../../support/browser.ts'
import { collectProblems, signIn } from '../../support/dashboard.ts'
import { createEvent, createRun, respondJson } from '../../support/fake-prompt-agent.ts'
import { fillBoxes } from '../../support/fill-boxes.ts'

const MIB = 1024 * 1024
const COMMANDS = 100_000
const ENTRIES = 1_000_000
const PAGE = 1000
const DAY_MS = 86_400_000
/** A page that does not answer a script for this long does not respond to its user. */
const RESPONSIVE_MS = 2000

/** 255 bytes without a space, with markup, a bidirectional override and a character of four bytes. */
const NAME = `<b>\u202e😀${'n'.repeat(245)}`
const SHOWN_NAME = NAME.replace('\u202e', '⟨U+202E⟩')
/** Words without spaces are the worst case for the width of a page. */
const LINE = 'x'.repeat(MIB - 1)

const createEntry = (name: string, fields: Partial<FileEntry> = {}): FileEntry => ({
  ...{ name, type: 'file', size: 1, mode: '0644', uid: 0, gid: 0, owner: 'o'.repeat(32), group: 'root' },
  mtime: '2026-01-01T00:00:00.000Z',
  ...fields,
})

const formatEntry = (index: number): string => `entry-${String(index).padStart(7, '0')}`

/** The entries of /names, and of the home directory, which has a million of them. */
function listFiles({ searchParams }: URL) {
  if (searchParams.get('path') === '/names') {
    const target = { type: 'symlink', target: `/${NAME}/${NAME}`, targetType: null } as const
    const entries = [createEntry(NAME), createEntry(`${NAME.slice(0, -1)}l`, target)]
    return { ok: true, type: 'file.list', path: '/names', entries, nextCursor: null }
  }
  const cursor = searchParams.get('cursor')
  const start = cursor === null ? 0 : Number(Buffer.from(cursor, 'base64url').toString().slice(6)) + 1
  const end = Math.min(ENTRIES, start + PAGE)
  const entries = Array.from({ length: end - start }, (_, index) => createEntry(formatEntry(start + index)))
  const next = end === ENTRIES ? null : Buffer.from(formatEntry(end - 1)).toString('base64url')
  return { ok: true, type: 'file.list', path: '/many', entries, nextCursor: next }
}

const RUN = createRun({ status: 'done', finishedAt: '2026-01-01T00:00:01.000Z', prompt: NAME, eventCount: 3 })
const EVENTS = [
  createEvent(1, { text: LINE, raw: null }),
  createEvent(2, { type: 'tool', text: 'read', tool: { name: 'Read', input: { path: NAME } }, raw: null }),
  createEvent(3, { type: 'tool_result', text: LINE, tool: { name: 'Read', input: null }, raw: null }),
]
const CONVERSATION = {
  ...{ id: RUN.conversationId, provider: RUN.provider, model: null, cwd: `/${NAME}`, prompts: 1, queued: 0 },
  ...{ running: false, lastRunId: RUN.id, lastStatus: RUN.status, sessionId: null, lastPrompt: NAME },
  ...{ createdAt: RUN.startedAt, updatedAt: RUN.startedAt },
}
const PROCESS = {
  ...{ pid: 7, ppid: 1, user: 'u'.repeat(64), name: 'n'.repeat(64), command: `/${NAME}`, state: 'R' },
  ...{ threads: 1, cpuPct: 1, memBytes: 1, startedAt: null, processId: null },
}

/** The responses of the agent, by path. */
const RESPONSES: Record<string, (url: URL) => object> = {
  '/files/list': listFiles,
  '/files': () => ({
    ...{ ok: true, type: 'file.read', path: '/names/long', encoding: 'utf8', content: `${LINE}\n` },
    ...{ size: MIB, mode: '0644' },
  }),
  '/prompts/conversations': () => ({
    ...{ ok: true, type: 'prompt.conversations', conversations: [CONVERSATION], running: 0, limit: 4 },
  }),
  '/prompts': () => ({ ok: true, type: 'prompt.list', runs: [RUN], active: null, queued: [] }),
  [`/prompts/${RUN.id}/events`]: () => ({
    ...{ ok: true, type: 'prompt.events', run: RUN, events: EVENTS, next: 3, finished: true },
  }),
  '/processes': () => ({
    ...{ ok: true, type: 'process.list', at: new Date().toISOString(), cpuPct: 1, cpuCount: 1 },
    ...{ memUsedBytes: 1, memTotalBytes: 2, total: 1, processes: [PROCESS] },
  }),
  '/terminal/sessions': () => ({
    ok: true,
    type: 'terminal.list',
    sessions: [
      {
        ...{ session: 's'.repeat(32), pid: 7, command: NAME.repeat(4), cols: 80, rows: 24, clients: 0 },
        ...{ startedAt: RUN.startedAt, lastActiveAt: RUN.startedAt },
      },
    ],
  }),
}

const measureRoundTrip = async (page: Page): Promise<number> => {
  const start = performance.now()
  await page.evaluate('new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)))')
  return performance.now() - start
}

t.test('much data', { skip: NO_BROWSER }, async (t) => {
  const unknown: string[] = []
  const coordinator = await startBoxWithFakeAgent(t, async ({ path }) => {
    const url = new URL(path, 'http://agent')
    const respond = RESPONSES[url.pathname]
    if (respond === undefined) unknown.push(path)
    return respond === undefined ? respondJson(404, {}) : respondJson(200, respond(url))
  })
  const { box, url, dataDir, instance } = coordinator
  const page = await (await startBrowser(t)).newPage()
  await page.setViewportSize({ width: 360, height: 800 })
  const base = `${url}/boxes/${box.hostname}`
  await page.goto(base)
  await signIn(page, dataDir)
  await page.getByRole('heading', { level: 1 }).waitFor()
  const problems = collectProblems(page)
  const requests: string[] = []
  page.on('request', (request) => requests.push(request.url()))
  const countElements = () => page.locator('main *').count()
  const button = (name: string | RegExp) => page.getByRole('button', { name })
  const testWidth = async (t: Test, name: string) =>
    t.equal(
      await page.evaluate('document.documentElement.scrollWidth'),
      360,
      `${name}: no horizontal scrolling`,
    )
  const testResponsive = async (t: Test, name: string) => {
    const ms = await measureRoundTrip(page)
    t.ok(ms < RESPONSIVE_MS, `${name}: the page responds after ${ms.toFixed(0)} ms`)
  }

  await t.test('100,000 commands', async (t) => {
    const { db } = instance.context
    await fillBoxes(db, { boxId: box.id, boxes: 1, commands: COMMANDS })
    // One command every 25 seconds, until now: 29 days.
    const stepMs = 25_000
    const start = Date.now() - COMMANDS * stepMs
    const at = sql<number>`${start} + started_at * ${stepMs}`
    await db
      .updateTable('commands')
      .set({
        requested_at: at,
        started_at: at,
        finished_at: sql<number>`${start} + started_at * ${stepMs} + 1000`,
      })
      .where('box_id', '=', box.id)
      .execute()
    requests.splice(0)
    await page.goto(`${base}/commands`)
    await page.getByText('The newest 50 commands are loaded.').waitFor()
    t.equal(await page.locator('tbody tr').count(), 50)
    await button('Load older commands').click()
    await page.getByText('The newest 100 commands are loaded.').waitFor()
    await page.getByLabel('Status').selectOption('failed')
    await page.getByText('The newest 50 commands are loaded.').waitFor()
    t.equal(await page.locator('tbody tr').count(), 50)
    t.same(new Set(await page.locator('tbody .result').allTextContents()), new Set(['failed']))
    await page.getByLabel('Filter').fill('absent')
    await page.getByText('No loaded command matches.').waitFor()
    await page.getByText('the filter does not search them').waitFor()
    t.ok(requests.filter((path) => path.includes('/commands?')).length < 8, 'few pages are loaded')

    requests.splice(0)
    await page.goto(`${base}/timeline?last=${(30 * DAY_MS) / 1000}`)
    await page.getByText('600 commands of this range are loaded, and earlier ones are not shown.').waitFor()
    await page.getByText(/more items are not shown/).waitFor()
    t.equal(await page.locator('.items li').count(), 50)
    await button('Load earlier commands').click()
    await page.getByText('1200 commands of this range are loaded').waitFor()
    // The first pages may be loaded twice, when the state of the box is reported meanwhile.
    t.ok(requests.filter((path) => path.includes('/commands?')).length <= 11, 'few pages are loaded')
    t.ok((await countElements()) < 5000)
    await testResponsive(t, 'the timeline')
    await testWidth(t, 'the timeline')
  })

  await t.test('a line of 1 MiB in a file, an answer and the result of a tool', async (t) => {
    await page.goto(`${base}/files?path=${encodeURIComponent('/names')}&file=long`)
    await page.getByRole('region', { name: 'Content of long' }).waitFor()
    await testResponsive(t, 'the file')
    t.match(await page.locator('main').textContent(), /1048575|x{100000}/)
    await testWidth(t, 'the file')

    await page.goto(`${base}/conversations?conversation=${RUN.conversationId}`)
    await page.getByRole('log').locator('pre').first().waitFor()
    await testResponsive(t, 'the answer')
    await testWidth(t, 'the answer')
    await page.getByRole('log').locator('summary').click()
    await button(/^Show all \d+ characters$/).waitFor()
    await testResponsive(t, 'the result of a tool')
    await testWidth(t, 'the result of a tool')
  })

  await t.test('a directory of a million entries', async (t) => {
    const more = page.locator('button', { hasText: 'Load more entries' })
    const entry = (index: number) => page.locator('th a', { hasText: formatEntry(index) })
    await page.goto(`${base}/files`)
    await page.getByText('1000 entries, and more').waitFor()
    requests.splice(0)
    await more.click()
    await page.getByText('2000 entries, and more').waitFor()
    const count = await countElements()
    await more.click()
    await page.getByText('Entries 1001 to 3000, and more').waitFor()
    await entry(2999).waitFor()
    t.ok(Math.abs((await countElements()) - count) < 10, 'the document does not grow')
    t.equal(await entry(0).count(), 0)
    t.equal(requests.filter((path) => path.includes('/files/list')).length, 2, 'one request for each page')
    await testResponsive(t, 'the directory')
    await button('Show the first entries').click()
    await page.getByText('1000 entries, and more').waitFor()
    await entry(0).waitFor()
  })

  await t.test('names of 255 bytes', async (t) => {
    t.equal(Buffer.byteLength(NAME), 255)
    await page.goto(`${base}/files?path=${encodeURIComponent('/names')}`)
    await page.getByRole('link', { name: SHOWN_NAME, exact: true }).waitFor()
    await testWidth(t, 'the directory')
    await button(`Delete ${SHOWN_NAME}`).click()
    await page.getByRole('dialog').getByText(`/names/${SHOWN_NAME} is deleted for good.`).waitFor()
    const scrolls =
      'document.querySelector("dialog").scrollWidth > document.querySelector("dialog").clientWidth'
    t.equal(await page.evaluate(scrolls), false, 'the dialog does not scroll')
    await page.keyboard.press('Escape')
    await page.getByRole('link', { name: SHOWN_NAME, exact: true }).click()
    await page.getByRole('region', { name: `Content of ${SHOWN_NAME}` }).waitFor()
    await testWidth(t, 'the file')

    await page.goto(`${base}/terminals`)
    await page.getByText(SHOWN_NAME.repeat(4)).waitFor()
    await testWidth(t, 'the terminals')

    await page.goto(`${base}/conversations`)
    await page.locator('.threads a', { hasText: SHOWN_NAME.slice(0, 60) }).waitFor()
    await testWidth(t, 'the conversations')

    const ports = [{ port: 3000, pid: 7, process: 'p'.repeat(64) }]
    await page.route(`**/boxes/${box.id}/port-shares`, async (route) => {
      const json = await (await route.fetch()).json()
      await route.fulfill({ json: { ...json, listening: { at: new Date().toISOString(), ports } } })
    })
    await page.goto(`${base}/processes`)
    await page.getByText('p'.repeat(64)).waitFor()
    await page.locator('th', { hasText: /n{100}.*…/ }).waitFor()
    await testWidth(t, 'the processes')
    await button('Kill 7').click()
    // The API replaces control characters in what a process has chosen.
    await page
      .getByRole('dialog')
      .getByText(`/${NAME.replace('\u202e', '\ufffd')}`)
      .waitFor()
    t.equal(await page.evaluate(scrolls), false, 'the dialog does not scroll')
    await page.keyboard.press('Escape')

    const { command } = PROCESS
    const { db } = instance.context
    await db.updateTable('commands').set({ command, cwd: command }).where('box_id', '=', box.id).execute()
    await page.goto(`${base}/commands`)
    const link = page.getByRole('link', { name: /n{100}.*…/ }).first()
    await link.waitFor()
    await testWidth(t, 'the commands')
    await link.click()
    await page.getByText(`in /${SHOWN_NAME}`).waitFor()
    t.equal(await page.locator('pre.text').textContent(), `/${SHOWN_NAME}`)
    await testWidth(t, 'the command')
    await page.goto(`${base}/timeline?last=3600`)
    await page
      .locator('.items summary', { hasText: /n{100}.*…/ })
      .first()
      .click()
    await page.locator('.items li').first().getByText(`/${SHOWN_NAME}`).first().waitFor()
    await testWidth(t, 'the timeline')
  })

  t.same(unknown, [], 'the agent has a response for each request')
  t.same(problems, [], 'no violation of the policy and no error')
})
