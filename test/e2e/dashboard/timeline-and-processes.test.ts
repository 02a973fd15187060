// The pages Timeline and Processes of a box in a real browser.
import type { Locator } from 'playwright-core'
import t from 'tap'
import { formatLocalDate, formatLocalTime } from '../../../dashboard/data/local-time.ts'
import type { Metrics } from '../../../shared/api/metrics.ts'
import { NO_BROWSER } from '../../support/browser.ts'
import { openDashboard, testAccessibility, waitForExpression } from '../../support/dashboard.ts'
import { createRun } from '../../support/fake-prompt-agent.ts'
import { startReportingAgent } from '../../support/reporting-agent.ts'
import { waitUntil } from '../../support/wait-until.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
/** The response of a box without samples. */
const removeSamples = (metrics: Metrics): Metrics => ({
  ...metrics,
  buckets: [],
  series: Object.fromEntries(
    Object.keys(metrics.series).map((name) => [name, { avg: [], max: [] }]),
  ) as unknown as Metrics['series'],
  fs: [],
  ifaces: [],
})
const iso = (ms: number): string => new Date(ms).toISOString()

t.test('what happened in a box is on one time axis', { skip: NO_BROWSER }, async (t) => {
  const { box, page, api, send, problems, waitForState } = await openDashboard(
    t,
    ({ hostname }) => `/boxes/${hostname}/timeline`,
  )
  const run = async (command: string) =>
    (await send('POST', `/v1/box/${box.id}/exec`, { command })).json.commandId as string
  await run('echo "a\u202eb" > file; exit 3')
  await run('true')
  const { snapshot } = (await api('POST', '/snapshots', { boxId: box.id, name: 'before' })).json
  await waitUntil('the snapshot is available', async () => {
    const { snapshots } = (await api('GET', '/snapshots')).json
    return snapshots.find(({ id }: { id: string }) => id === snapshot.id)?.status === 'available'
  })
  // The prompt of a coding agent, which this box does not have.
  const prompt = createRun({ prompt: 'Write a test', status: 'done', startedAt: new Date().toISOString() })
  await page.route('**/v1/box/*/prompts', (route) =>
    route.fulfill({ json: { ok: true, type: 'prompt.list', runs: [prompt], active: null, queued: [] } }),
  )
  // A box takes its first sample after 30 seconds: the charts would then move the lanes below the pointer.
  await page.route('**/api/v1/boxes/*/metrics?*', async (route) => {
    const response = await route.fetch()
    await route.fulfill({ response, json: removeSamples(await response.json()) })
  })
  await page.reload()
  const items = page.locator('.items > li')
  const surface = page.getByRole('slider', { name: 'Range of the timeline' })
  /** What is loaded later does not move the surface any more. */
  const locate = async (element: Locator) => {
    await page.getByText('There are no samples in this range.').waitFor()
    await element.scrollIntoViewIfNeeded()
    const area = await element.boundingBox()
    if (area === null) throw new Error('the element is not visible')
    return area
  }
  // The browser logs each moment without processes, after the response.
  let momentsWithout = 0
  page.on('response', (response) => {
    if (response.status() === 404 && response.url().includes('/procs-at?')) momentsWithout += 1
  })
  const getQuery = () => new URL(page.url()).searchParams
  const waitForQuery = (isExpected: (query: URLSearchParams) => boolean) =>
    waitUntil(`another URL than ${page.url()}`, async () => isExpected(getQuery()))
  const getSpan = (query: URLSearchParams) =>
    query.has('last')
      ? Number(query.get('last')) * 1000
      : Date.parse(query.get('to') ?? '') - Date.parse(query.get('from') ?? '')

  await t.test('commands, prompts, snapshots and states of the last hour, with their results', async (t) => {
    for (const [title, result] of [
      ['echo "a⟨U+202E⟩b" > file; exit 3', 'exited with 3'],
      ['true', 'succeeded'],
      ['Write a test', 'claude, done'],
      ['before', 'available'],
      ['running', ''],
    ] as const)
      await items.filter({ hasText: title }).filter({ hasText: result }).first().waitFor()
    t.ok((await page.locator('.bar').count()) >= 5)
  })

  await t.test('an item has its details, by keyboard', async (t) => {
    const item = items.filter({ hasText: 'exit 3' })
    await item.locator('summary').focus()
    await page.keyboard.press('Enter')
    await item.getByText(/^you/).waitFor()
    t.match(await item.locator('dl').textContent(), /Duration/)
  })

  await t.test('an item of the list and of the chart links to its page', async (t) => {
    const { commands } = (await api('GET', `/boxes/${box.id}/commands`)).json
    const failed = commands.find(({ exitCode }: { exitCode: number }) => exitCode === 3)
    for (const [title, label, path] of [
      ['exit 3', 'Open the command', `/commands?command=${failed.id}`],
      ['Write a test', 'Open the conversation', `/conversations?conversation=${prompt.conversationId}`],
      ['Snapshots before', 'Open the snapshots', '/workspace/snapshots'],
    ] as const) {
      const item = items.filter({ hasText: title })
      const link = item.getByRole('link', { name: label })
      if (!(await link.isVisible())) await item.locator('summary').click()
      t.ok(
        await link.evaluate(
          (element, end) => (element as unknown as { href: string }).href.endsWith(end),
          path,
        ),
      )
    }
    // In a longer range, the bar moves less while the time advances.
    await page.getByRole('button', { name: 'Last hour' }).click()
    await waitForQuery((query) => query.get('last') === '3600')
    const bar = await locate(page.locator('.lanes .bar.bad'))
    await page.mouse.click(bar.x + bar.width / 2, bar.y + bar.height / 2)
    await page.mouse.move(0, 0)
    const selection = page.getByRole('complementary', { name: 'Selection' })
    await selection.getByRole('heading', { name: /exit 3$/ }).waitFor()
    await waitForQuery((query) => query.has('at'))
    await selection.getByRole('link', { name: 'Open the command' }).click()
    await page.getByRole('heading', { name: box.hostname }).waitFor()
    await waitUntil('the page of the command', async () => getQuery().get('command') === failed.id)
    await page.goBack()
    await items.first().waitFor()
    await selection.getByRole('button', { name: 'Close' }).click()
    await page.getByRole('button', { name: 'Last hour' }).click()
    await waitForQuery((query) => query.get('last') === '3600' && !query.has('at'))
  })

  await t.test('the keys zoom, move and select a moment, and the URL has them', async (t) => {
    await surface.focus()
    await page.keyboard.press('-')
    await waitForQuery((query) => query.get('last') === '7200')
    await page.keyboard.press('+')
    await waitForQuery((query) => query.get('last') === '3600')
    await page.keyboard.press('ArrowLeft')
    await waitForQuery((query) => query.has('from') && getSpan(query) === HOUR)
    const before = getQuery()
    await page.keyboard.press('+')
    await waitForQuery((query) => getSpan(query) === HOUR / 2)
    t.ok(Date.parse(getQuery().get('from') ?? '') > Date.parse(before.get('from') ?? ''))
    await page.keyboard.press('Shift+ArrowLeft')
    await waitForQuery((query) => query.has('at'))
    await page.getByRole('heading', { name: /^Processes at 20/ }).waitFor()
    t.equal(await page.evaluate('document.activeElement.getAttribute("role")'), 'slider', 'the focus stays')
    await page.getByText('No processes were recorded').waitFor()
    const earlier = Date.now() - 2 * HOUR
    await page.getByLabel('Moment').fill('1999-01-01T00:00')
    await page.getByLabel('Moment').fill(formatLocalTime(earlier).replace(' ', 'T').slice(0, 16))
    await page
      .getByRole('heading', { name: `Processes at ${formatLocalTime(earlier).slice(0, 16)}` })
      .waitFor()
    await page.getByText('No processes were recorded').waitFor()
    t.ok(Date.parse(getQuery().get('from') ?? '') > Date.now() - 4 * HOUR, 'the moment is in the range')
    await surface.focus()
    await page.keyboard.press('Escape')
    await waitForQuery((query) => !query.has('at'))
    await page.keyboard.press('End')
    await waitForQuery((query) => query.get('last') === '1800')
  })

  await t.test('the mouse and the wheel', async (t) => {
    await page.getByRole('button', { name: 'Last hour' }).click()
    await waitForQuery((query) => query.get('last') === '3600')
    const area = await locate(surface)
    const [x, y] = [area.x + area.width / 2, area.y + area.height / 2]
    await page.mouse.move(x, y)
    t.match(await page.locator('.readout').textContent(), /^20\d\d-\d\d-\d\d \d\d:\d\d:\d\d/)
    await page.mouse.down()
    await page.mouse.move(x + area.width / 4, y, { steps: 4 })
    await page.mouse.up()
    await waitForQuery((query) => query.has('from'))
    t.ok(Math.abs(getSpan(getQuery()) - HOUR / 4) < 60_000, 'a drag selects a range')
    t.notOk(getQuery().has('at'), 'and no moment')
    const overview = await page.locator('.overview .window').boundingBox()
    const from = Date.parse(getQuery().get('from') ?? '')
    const [left, top] = [overview?.x ?? 0, (overview?.y ?? 0) + 10]
    await page.mouse.move(left + 4, top)
    await page.mouse.down()
    await page.mouse.move(left - 20, top, { steps: 4 })
    await page.mouse.up()
    await waitForQuery((query) => Date.parse(query.get('from') ?? '') < from)
    t.ok(Math.abs(getSpan(getQuery()) - HOUR / 4) < 60_000, 'the strip moves the range')
    await page.mouse.move(x, y)
    await page.keyboard.down('Control')
    // A user sends many wheel events. On a busy machine, a single one had no effect; the reason is not known.
    const shown = await surface.getAttribute('aria-valuetext')
    await waitUntil('the wheel changes the range', async () => {
      await page.mouse.wheel(0, -300)
      return (await surface.getAttribute('aria-valuetext')) !== shown
    })
    await page.keyboard.up('Control')
    await waitForQuery((query) => getSpan(query) < HOUR * 0.15)
  })

  await t.test('a touch moves the range, and two fingers zoom', async (t) => {
    const client = await page.context().newCDPSession(page)
    const area = await locate(surface)
    const touch = (type: 'touchStart' | 'touchMove' | 'touchEnd', ...positions: number[]) =>
      client.send('Input.dispatchTouchEvent', {
        type,
        touchPoints: positions.map((x, id) => ({ id, x: area.x + x, y: area.y + 30 })),
      })
    // Events of the wheel may still arrive.
    await page.getByRole('button', { name: 'Last hour' }).click()
    await waitForQuery((query) => query.get('last') === '3600')
    await touch('touchStart', 200)
    for (const x of [230, 260, 290]) await touch('touchMove', x)
    await touch('touchEnd')
    await waitForQuery((query) => query.has('from'))
    t.ok(Math.abs(getSpan(getQuery()) - HOUR) < 2_000, 'the span stays')
    await touch('touchStart', 200)
    await touch('touchStart', 200, 300)
    for (const x of [190, 170, 150]) await touch('touchMove', x, 500 - x)
    await touch('touchEnd')
    await waitForQuery((query) => getSpan(query) < HOUR * 0.7)
  })

  await t.test('a suspend is shown live, with what happened before, and without prompts', async () => {
    await page.getByRole('button', { name: 'Last hour' }).click()
    await waitForQuery((query) => query.get('last') === '3600')
    await run('echo later')
    await api('POST', `/boxes/${box.id}/suspend`)
    await items
      .filter({ hasText: /State suspended/ })
      .first()
      .waitFor()
    await items.filter({ hasText: 'echo later' }).filter({ hasText: 'succeeded' }).waitFor()
    await items.filter({ hasText: 'exit 3' }).waitFor()
    await page.getByText('Prompts are stored on the box').waitFor()
    await api('POST', `/boxes/${box.id}/wake`)
    await waitForState(box.id, 'running')
  })

  await t.test('earlier prompts and state changes are loaded when the user asks for them', async (t) => {
    const start = Date.now()
    const listed = Array.from({ length: 50 }, (_, index) =>
      createRun({ prompt: `Recent ${index}`, status: 'done', startedAt: iso(start - index) }),
    )
    const earlier = createRun({ prompt: 'Earlier', status: 'done', startedAt: iso(start - MINUTE) })
    const { conversationId: id, startedAt } = earlier
    await page.route('**/v1/box/*/prompts', (route) =>
      route.fulfill({ json: { ok: true, type: 'prompt.list', runs: listed, active: null, queued: [] } }),
    )
    await page.route('**/v1/box/*/prompts/conversations', (route) =>
      route.fulfill({ json: { conversations: [{ id, createdAt: startedAt, updatedAt: startedAt }] } }),
    )
    await page.route('**/v1/box/*/prompts?conversation=*', (route) =>
      route.fulfill({ json: { ok: true, runs: [earlier], active: null, queued: [] } }),
    )
    // The coordinator stores the newest 50 state changes.
    await page.route(`**/api/v1/boxes/${box.id}`, async (route) => {
      const response = await route.fetch()
      const detail = await response.json()
      const events = Array.from({ length: 50 }, (_, index) => ({
        ...detail.events[0],
        ...{ id: `e${index}`, at: iso(start - index), fromState: 'suspended', toState: 'running' },
      }))
      await route.fulfill({ response, json: { ...detail, events } })
    })
    await page.reload()
    await page.getByRole('button', { name: 'Load earlier prompts' }).click()
    await page.getByRole('button', { name: 'Load earlier requests from the audit log' }).click()
    const more = page.getByRole('button', { name: /^Show \d+ more/ })
    await more.waitFor()
    while (await more.isVisible()) await more.click()
    await items.filter({ hasText: 'Earlier' }).waitFor()
    await items.filter({ hasText: 'box.suspend' }).filter({ hasText: 'from the audit log' }).waitFor()
    t.match(await page.locator('.notes').textContent(), 'does not have the end of a state')
    t.equal(await page.getByRole('button', { name: /^Load earlier/ }).count(), 0)
    await page.unroute(`**/api/v1/boxes/${box.id}`)
    await page.unroute('**/v1/box/*/prompts')
  })
  const others = problems.filter((text) => !text.includes('status of 404'))
  t.same(others, [], 'no violation of the policy and no error')
  t.ok(problems.length - others.length <= momentsWithout, 'no other response is 404')
})

t.test('usage with gaps, and the processes of a moment', { skip: NO_BROWSER }, async (t) => {
  const { box, page, url, infra, api, problems } = await openDashboard(
    t,
    ({ hostname }) => `/boxes/${hostname}`,
    {},
  )
  const token = infra.machines.get(box.id)?.token ?? ''
  const agent = await startReportingAgent(t, { boxId: box.id, token }, url)
  const now = Math.floor(Date.now() / HOUR) * HOUR
  const at = now - 30 * MINUTE
  const report = (seq: number, body: object) => ({ type: 'report', epoch: 'e', seq, report: body })
  const names = ['cpu_count', 'load1', 'load5', 'load15', 'process_count', 'listener_count']
  const nulls = [...names, 'disk_read_bytes_per_sec', 'disk_write_bytes_per_sec']
  const sample = (start: number, cpu: number) => ({
    type: 'metrics.sample',
    start,
    values: {
      ...Object.fromEntries(nulls.map((name) => [name, null])),
      cpu_pct: cpu,
      mem_used_bytes: 2 ** 29,
      mem_total_bytes: 2 ** 30,
    },
    fs: [],
    ifaces: [],
  })
  // Half an hour of samples, ten minutes without, and ten more minutes.
  const starts = [...Array(60).keys(), ...Array.from({ length: 20 }, (_, index) => 80 + index)]
  const delta = {
    added: [[7, 1, at - 1000, 'box', 'node', 'node \u202e server.js']],
    removed: [],
    usage: [[7, 125, 2048]],
    ports: [[3000, 7, 'node']],
    total: 1,
  }
  const samples = starts.map((index) => sample((now - HOUR) / 1000 + index * 30, index < 80 ? 25 : 75))
  agent.send([
    report(1, { type: 'processes.snapshot', at, previousAt: null, delta: JSON.stringify(delta) }),
    ...samples.map((body, index) => report(index + 2, body)),
  ])
  await waitUntil('the reports are stored', () => agent.lastAck()?.seq === samples.length + 1)
  await page.route('**/v1/box/*/prompts', (route) =>
    route.fulfill({ json: { ok: true, type: 'prompt.list', runs: [], active: null, queued: [] } }),
  )
  const link = `${url}/boxes/${box.hostname}/timeline?from=${iso(now - HOUR)}&to=${iso(now)}&at=${iso(at)}`
  await page.goto(link)

  await page.getByRole('img', { name: /^CPU\. mean: mean 38 %, highest 75 %/ }).waitFor()
  await page.getByRole('img', { name: /^Memory\. used: mean 512 MiB/ }).waitFor()
  t.match(await page.locator('.notes').textContent(), 'Not measured for this box: Disk space, Disk, Network.')
  await page.getByRole('row', { name: 'node \ufffd server.js 7 · box 12.5 % 2 MiB' }).waitFor()
  t.match(await page.locator('section[aria-labelledby=moment] li').textContent(), '3000 node (7)')
  t.same((await api('GET', `/boxes/${box.id}/procs-at?t=${iso(at)}`)).json.procs.length, 1)

  const surface = await page.getByRole('slider').boundingBox()
  if (surface === null) throw new Error('the surface is not visible')
  const caption = page.locator('figcaption', { hasText: 'CPU' })
  await page.mouse.move(surface.x + surface.width * 0.25, surface.y + 60)
  await caption.getByText('mean 25 %').waitFor()
  await page.mouse.move(surface.x + surface.width * 0.58, surface.y + 60)
  await caption.getByText('mean –').waitFor()
  await page.mouse.move(surface.x + surface.width * 0.75, surface.y + 60)
  await caption.getByText('mean 75 %').waitFor()

  // Which twentieths of the plot have coloured pixels. The texts and the grid are grey.
  const drawn: boolean[] = await page.evaluate(`(() => {
    const canvas = document.querySelector('.chart canvas')
    const scale = canvas.width / canvas.clientWidth
    const width = canvas.width - 78 * scale
    const { data } = canvas.getContext('2d').getImageData(68 * scale, 0, width, canvas.height)
    const drawn = Array(20).fill(false)
    for (let index = 0; index < data.length; index += 4) {
      const [red, green, blue, alpha] = data.slice(index, index + 4)
      const column = (index / 4) % Math.floor(width)
      if (alpha > 200 && Math.max(red, green, blue) - Math.min(red, green, blue) > 60)
        drawn[Math.floor((column / width) * 20)] = true
    }
    return drawn
  })()`)
  t.same(drawn.slice(1, 9), Array(8).fill(true))
  t.same(drawn.slice(11, 13), [false, false], 'a gap is a gap')
  t.same(drawn.slice(14, 16), [true, true])

  await testAccessibility(t, page, () => page.getByRole('img', { name: /^CPU/ }).waitFor())
  t.equal(new URL(page.url()).search, new URL(link).search, 'the link stays the same')

  const earlier = `from=${iso(now - 48 * HOUR)}&to=${iso(now - 47 * HOUR)}`
  await page.goto(`${url}/boxes/${box.hostname}/timeline?${earlier}`)
  await page.getByText('There are no samples in this range.').waitFor()

  await page.addInitScript('const now = Date.now; Date.now = () => now() + 86_400_000')
  await page.goto(`${url}/boxes/${box.hostname}/timeline`)
  const range = await page.locator('.range').textContent()
  t.match(
    range,
    new RegExp(`^${formatLocalDate(Date.now())} `),
    'the clock of the coordinator, not of the device',
  )
  t.match(range, /live$/)
  t.same(problems, [], 'no violation of the policy and no error')
})

t.test('processes and ports', { skip: NO_BROWSER }, async (t) => {
  const { box, page, api, send, problems, waitForState } = await openDashboard(
    t,
    ({ hostname }) => `/boxes/${hostname}/processes`,
  )
  const start = async (command: string) =>
    (await send('POST', `/v1/box/${box.id}/exec`, { command, detached: true })).json.processId as string
  const getOutput = async (id: string) => (await send('GET', `/v1/box/${box.id}/exec/${id}`)).json
  const sleeper = await start('exec sleep 98765')
  const server = await start(
    'exec node -e "const s = require(\'net\').createServer().listen(0, () => console.log(s.address().port))"',
  )
  let port = ''
  await waitUntil('the server listens', async () => {
    port = (await getOutput(server)).stdout.trim()
    return port !== ''
  })
  const processes = page.locator('table.processes')
  const row = processes.getByRole('row', { name: /^sleep 98765/ })
  const portRow = page.getByRole('row', { name: new RegExp(`^${port} `) })

  await t.test('the processes are live, and sorted', async (t) => {
    await row.waitFor()
    await processes.getByRole('button', { name: 'Command' }).click()
    t.equal(await processes.locator('th[aria-sort]').getAttribute('aria-sort'), 'ascending')
    const commands = await processes.locator('tbody th').allTextContents()
    t.same(commands, [...commands].sort())
  })

  await t.test('kill, by keyboard', async (t) => {
    await row.getByRole('button', { name: /^Kill/ }).focus()
    await page.keyboard.press('Enter')
    const dialog = page.getByRole('dialog')
    t.match(await dialog.textContent(), /box exec \S+ -- kill -TERM \d+/)
    await dialog.getByRole('button', { name: 'Send the signal' }).focus()
    await page.keyboard.press('Enter')
    await dialog.waitFor({ state: 'detached' })
    await waitUntil('the process has exited', async () => !(await getOutput(sleeper)).running)
    t.match(await getOutput(sleeper), { signal: 'TERM' })
    await row.waitFor({ state: 'detached' })
    await waitForExpression(page, "document.activeElement.tagName === 'H1'")
  })

  await t.test('a port is shared and revoked', async (t) => {
    await portRow.getByRole('button', { name: `Share ${port}` }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Who may open the link').selectOption('members')
    await dialog.getByLabel('The link works for').waitFor({ state: 'detached' })
    await dialog.getByLabel('Who may open the link').selectOption('anyone')
    await dialog.getByLabel('The link works for').selectOption('3600')
    t.match(await dialog.textContent(), `box share ${box.hostname} ${port} --anyone --expires 1h`)
    await dialog.getByRole('button', { name: 'Create the link' }).click()
    const shares = async () => (await api('GET', `/boxes/${box.id}/port-shares`)).json.shares
    await page.getByText('It has a secret, which is shown only now.').waitFor()
    t.match(await shares(), [{ port: Number(port), access: 'anyone' }])
    await portRow.getByRole('button', { name: /^Revoke/ }).click()
    await portRow.getByRole('button', { name: /^Share/ }).waitFor()
    t.same(await shares(), [])
  })

  t.same(problems, [], 'no violation of the policy and no error')

  await t.test('a suspended box has no processes, and is not asked for them', async (t) => {
    await api('POST', `/boxes/${box.id}/suspend`)
    await page.getByText('The box is suspended: no process runs.').waitFor()
    await page.getByRole('link', { name: 'Processes of an earlier moment' }).click()
    await page.getByRole('heading', { name: /^Processes at/ }).waitFor()
    t.ok(new URL(page.url()).searchParams.has('at'))
    await api('POST', `/boxes/${box.id}/wake`)
    await waitForState(box.id, 'running')
  })
})
