// The logic of the timeline: ranges and the URL, ticks, lanes, charts, and the items of four sources.
import t from 'tap'
import type { CommandQuery } from '../../../dashboard/api/client.ts'
import type { Metrics } from '../../../shared/api/metrics.ts'
import { createRun } from '../../support/fake-prompt-agent.ts'

process.env.TZ = 'Europe/Berlin'
const { advance, formatView, listPresets, pan, parseView, selectLast, selectMoment, selectRange, zoom } =
  await import('../../../dashboard/data/timeline/range.ts')
const { listTicks } = await import('../../../dashboard/data/timeline/ticks.ts')
const { findBar, layOutLanes } = await import('../../../dashboard/data/timeline/lanes.ts')
const { createCharts, findBucket, listIsolated } = await import('../../../dashboard/data/timeline/charts.ts')
const { mergeItems, selectItems } = await import('../../../dashboard/data/timeline/items.ts')
const { addNewest, hasEarlierRuns, loadCommands, loadEarlierRuns, loadRequests } = await import(
  '../../../dashboard/data/timeline/sources.ts'
)
const { formatDuration, formatLocalTime, formatZone } = await import('../../../dashboard/data/local-time.ts')
const { formatBytes } = await import('../../../dashboard/data/sizes.ts')

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const NOW = Date.parse('2026-11-27T12:00:00Z')

t.test('a range and a moment are in the URL', (t) => {
  const fixed = '?from=2026-11-27T03:00:00.000Z&to=2026-11-27T04:00:00.000Z&at=2026-11-27T03:14:00.000Z'
  const view = parseView(fixed, NOW)
  t.same(view, { range: { from: NOW - 9 * HOUR, to: NOW - 8 * HOUR }, isLive: false, at: NOW - 526 * MINUTE })
  t.same(
    parseView(`?${new URLSearchParams(formatView(view))}`, NOW + DAY),
    view,
    'the same for others, later',
  )
  const live = parseView('?last=86400', NOW)
  t.same(live, { range: { from: NOW - DAY, to: NOW }, isLive: true, at: null })
  t.same(formatView(live), { last: '86400' })
  t.same(advance(live, NOW + HOUR).range, { from: NOW - DAY + HOUR, to: NOW + HOUR })
  t.same(advance(view, NOW + HOUR), view)
  for (const query of [
    '',
    '?last=-1',
    '?last=x',
    '?from=x&to=y',
    '?from=2026-11-27T04:00:00Z&to=2026-11-27T03:00:00Z',
  ])
    t.same(parseView(query, NOW), selectLast(HOUR, NOW), query)
  t.equal(parseView('?last=1e300', NOW).range.from, NOW - 30 * DAY)
  const long = parseView('?from=2000-01-01T00:00:00Z&to=2026-11-01T00:00:00Z', NOW).range
  t.equal(long.to - long.from, 30 * DAY)
  t.end()
})

t.test('the first view of a young box begins where the box begins', (t) => {
  const labels = (ageMs: number) => listPresets(ageMs).map(({ label }) => label)
  t.same(labels(20 * MINUTE), ['Last hour', 'Whole life'])
  t.same(labels(3 * DAY), ['Last hour', '24 hours', 'Whole life'])
  t.same(labels(60 * DAY), ['Last hour', '24 hours', '7 days', '30 days'])
  t.ok((listPresets(3 * DAY).at(-1)?.ms ?? 0) >= 3 * DAY)
  const { range } = parseView('', NOW, 20 * MINUTE)
  t.ok(range.from < NOW - 20 * MINUTE && range.from > NOW - 22 * MINUTE)
  t.same(parseView('', NOW, 1000).range, { from: NOW - 5 * MINUTE, to: NOW })
  t.same(parseView('?last=3600', NOW, 1000).range, { from: NOW - HOUR, to: NOW })
  t.end()
})

t.test('a range between two times, in any order', (t) => {
  const live = selectLast(HOUR, NOW)
  const expected = { range: { from: NOW - 20 * MINUTE, to: NOW - 10 * MINUTE }, isLive: false, at: null }
  t.same(selectRange(live, NOW - 20 * MINUTE, NOW - 10 * MINUTE, NOW), expected)
  t.same(selectRange(live, NOW - 10 * MINUTE, NOW - 20 * MINUTE, NOW), expected)
  t.same(selectRange(live, NOW - 1, NOW - 2, NOW).range, { from: NOW - 1 - MINUTE, to: NOW - 1 })
  t.equal(selectRange(live, NOW - HOUR, NOW + HOUR, NOW).range.to, NOW)
  t.end()
})

t.test('zoom and pan', (t) => {
  const live = selectLast(HOUR, NOW)
  t.same(zoom(live, 0.5, NOW - HOUR, NOW), selectLast(HOUR / 2, NOW), 'a live range keeps its end')
  const earlier = pan(live, -30 * MINUTE, NOW)
  t.same(earlier.range, { from: NOW - 90 * MINUTE, to: NOW - 30 * MINUTE })
  t.equal(earlier.isLive, false)
  t.same(pan(earlier, 30 * MINUTE, NOW), live, 'a range that ends now is live')
  const anchor = NOW - 75 * MINUTE
  const zoomed = zoom(earlier, 0.5, anchor, NOW).range
  t.equal(zoomed.to - zoomed.from, 30 * MINUTE)
  t.equal((anchor - zoomed.from) / (zoomed.to - zoomed.from), 0.25, 'the time at the pointer stays there')
  t.equal(zoom(live, 1e-9, NOW, NOW).range.from, NOW - MINUTE)
  t.same(zoom(live, 1e9, NOW, NOW).range, { from: NOW - 30 * DAY, to: NOW })
  t.equal(pan(earlier, -99 * DAY, NOW).range.from, NOW - 30 * DAY)
  t.match(selectMoment(live, NOW + HOUR, NOW), { isLive: false, at: NOW, range: live.range })
  t.end()
})

t.test('ticks are at full local times, also after a change of the clock', (t) => {
  const labels = (from: string, to: string, count: number) =>
    listTicks({ from: Date.parse(from), to: Date.parse(to) }, count).map(({ label }) => label)
  t.same(labels('2026-11-27T10:01:00Z', '2026-11-27T11:01:00Z', 6), [
    '11:10',
    '11:20',
    '11:30',
    '11:40',
    '11:50',
    '12:00',
  ])
  t.same(labels('2026-11-26T22:30:00Z', '2026-11-26T23:30:00Z', 2), ['23:30', '11-27', '00:30'])
  // In the night to 2026-10-25, the hour from 02:00 to 03:00 happens twice.
  t.same(labels('2026-10-24T22:00:00Z', '2026-10-25T08:00:00Z', 4), ['10-25', '03:00', '06:00', '09:00'])
  t.same(labels('2026-11-01T00:00:00Z', '2026-11-03T23:00:00Z', 4), ['11-02', '11-03', '11-04'])
  const range = { from: NOW - 30 * DAY, to: NOW }
  const ticks = listTicks(range, 8).map(({ at }) => at)
  const moved = listTicks({ from: range.from - DAY, to: range.to - DAY }, 8).map(({ at }) => at)
  t.ok(ticks.length >= 5 && ticks.length <= 8, String(ticks.length))
  t.ok(moved.filter((at) => ticks.includes(at)).length >= ticks.length - 1, 'ticks stay where they are')
  t.equal(labels('2026-11-27T10:00:02Z', '2026-11-27T10:01:02Z', 12)[0], '11:00:05')
  t.end()
})

t.test('bars get lanes, and those without a lane are counted', (t) => {
  const range = { from: 0, to: 1000 }
  const layOut = (items: { id: string; from: number; to: number | null }[], maxLanes = 2) =>
    layOutLanes(items, { range, width: 100, now: 1000, maxLanes })
  const lanes = layOut([
    { id: 'late', from: 500, to: 600 },
    { id: 'before', from: -500, to: 100 },
    { id: 'running', from: 50, to: null },
    { id: 'third', from: 60, to: 70 },
    { id: 'outside', from: 1500, to: null },
    { id: 'over', from: -20, to: -10 },
  ])
  t.match(lanes, {
    count: 2,
    hidden: 1,
    bars: [
      { item: { id: 'before' }, lane: 0, x: 0, width: 10 },
      { item: { id: 'running' }, lane: 1, x: 5, width: 95 },
      { item: { id: 'late' }, lane: 0, x: 50, width: 10 },
    ],
  })
  t.equal(lanes.bars.length, 3)
  t.equal(findBar(lanes, 0, 62)?.item.id, 'late')
  t.equal(findBar(lanes, 0, 30), undefined)
  t.match(
    layOut([{ id: 'short', from: 1000, to: 1000 }]).bars,
    [{ x: 97, width: 3 }],
    'short bars are visible',
  )
  const many = Array.from({ length: 100_000 }, (_, index) => ({ id: String(index), from: 500, to: 501 }))
  t.match(layOut(many, 10), { count: 10, hidden: 99_990 })
  t.end()
})

const values = (...avg: (number | null)[]) => ({ avg, max: avg })

t.test('charts have gaps, and only what is measured', (t) => {
  const none = values(null, null, null, null)
  const names = ['cpu_pct', 'cpu_count', 'mem_used_bytes', 'mem_total_bytes', 'load1', 'load5', 'load15']
  const rates = ['process_count', 'listener_count', 'disk_read_bytes_per_sec', 'disk_write_bytes_per_sec']
  const metrics = {
    v: 1 as const,
    res: 30 as const,
    from: '',
    to: '',
    buckets: [0, 30, 60, 90],
    series: {
      ...(Object.fromEntries([...names, ...rates].map((name) => [name, none])) as Metrics['series']),
      cpu_pct: values(1, null, 3, null),
      mem_used_bytes: values(512, 512, null, 512),
      mem_total_bytes: values(1024, 2048, null, null),
    },
    fs: [],
    ifaces: [
      { name: 'a', rx_bytes_per_sec: values(1, 2, null, 4), tx_bytes_per_sec: none },
      { name: 'b', rx_bytes_per_sec: values(10, null, null, 40), tx_bytes_per_sec: none },
    ],
  }
  const charts = createCharts(metrics)
  t.same(charts.times, [15, 45, 75, 105])
  t.same(
    charts.charts.map(({ title }) => title),
    ['CPU', 'Memory', 'Network'],
  )
  t.same(charts.missing, ['Disk space', 'Disk'])
  t.equal(charts.charts[1]?.limit, 2048)
  t.same(
    charts.charts.map(({ top }) => top),
    [5, 1024, 1024],
    'round values that contain all lines',
  )
  t.same(charts.charts[2]?.lines[0], { label: 'received', values: [11, 2, null, 44] })
  t.same(listIsolated([1, null, 3, 4, null, 5]), [0, 5])
  t.equal(findBucket(charts, 50), 1)
  t.equal(findBucket(charts, 500), null)
  t.same(
    createCharts({
      ...metrics,
      series: { ...metrics.series, cpu_pct: none, mem_used_bytes: none },
      ifaces: [],
    }).missing,
    [],
  )
  t.end()
})

const command = (id: string, startedAt: number, fields: object = {}) =>
  ({
    id,
    command: `echo ${id}`,
    status: 'exited',
    exitCode: 0,
    signal: null,
    cwd: '~',
    startedAt: new Date(startedAt).toISOString(),
    finishedAt: new Date(startedAt + 1000).toISOString(),
    actor: { kind: 'user', userId: 'usr_1', tokenId: null },
    stdoutBytes: 0,
    stderrBytes: 0,
    ...fields,
  }) as never

t.test('items of four sources in one range', (t) => {
  const event = (id: string, at: number, fromState: string | null, toState: string) =>
    ({
      id,
      at: new Date(at).toISOString(),
      fromState,
      toState,
      reason: 'r',
      code: null,
      actor: `user:usr_${id === 'e3' ? 2 : 1}`,
    }) as never
  const items = selectItems(
    {
      events: [
        event('e3', NOW - 30 * MINUTE, 'suspended', 'running'),
        event('e2', NOW - 2 * HOUR, 'running', 'suspended'),
        event('e1', NOW - DAY, null, 'running'),
      ],
      commands: [command('p_1', NOW - 10 * MINUTE), command('p_0', NOW - DAY)],
      requests: [
        {
          ...{ id: 7, at: new Date(NOW - 50 * MINUTE).toISOString(), kind: 'box.suspend', origin: 'server' },
          ...{ actorKind: 'session', actorUserId: 'usr_2', actorTokenId: null, boxId: 'b', detail: {} },
        } as never,
      ],
      runs: [
        createRun({
          id: 'run_1',
          conversationId: 'cv_1',
          startedAt: new Date(NOW - 40 * MINUTE).toISOString(),
        }),
      ],
      snapshots: [
        {
          id: 's',
          name: 'before',
          kind: 'manual',
          status: 'available',
          error: null,
          sizeGb: 1,
          createdAt: new Date(NOW - MINUTE).toISOString(),
        } as never,
      ],
    },
    { from: NOW - HOUR, to: NOW },
    { userId: 'usr_1', names: new Map([['usr_2', 'Ada']]), now: NOW, boxName: 'fig' },
  )
  t.match(items.state, [
    { id: 'e2', title: 'suspended', tone: 'quiet', from: NOW - 2 * HOUR, to: NOW - 30 * MINUTE },
    {
      id: 'audit_7',
      title: 'box.suspend',
      result: 'from the audit log',
      details: [{ name: 'By', text: 'Ada' }],
    },
    { id: 'e3', title: 'running', tone: 'good', to: null },
  ])
  t.same(items.state.length, 3)
  t.match(items.state[2]?.details, [{ name: 'Before', text: 'suspended' }, {}, { name: 'By', text: 'Ada' }])
  t.match(items.command, [{ id: 'p_1', result: 'succeeded' }])
  t.match(items.command[0]?.details, [{}, { name: 'Duration', text: '1 s' }, { name: 'By', text: 'you' }])
  t.same(
    mergeItems(items).map(({ id }) => id),
    ['s', 'p_1', 'e3', 'run_1', 'audit_7', 'e2'],
  )
  t.same(
    mergeItems(items).map(({ link }) => link?.path),
    [
      'workspace/snapshots',
      'boxes/fig/commands?command=p_1',
      undefined,
      'boxes/fig/conversations?conversation=cv_1',
      undefined,
      undefined,
    ],
    'an item links to its page',
  )
  t.end()
})

t.test('commands are loaded until the start of the range, a bounded number of pages at a time', async (t) => {
  const all = Array.from({ length: 2_000 }, (_, index) => command(`p_${index}`, NOW - index * MINUTE))
  const running = command('p_long', NOW - 90 * DAY, { status: 'running', exitCode: null, finishedAt: null })
  const queries: object[] = []
  const loadPage = async (query: CommandQuery) => {
    queries.push(query)
    if (query.status === 'running') return { commands: [running], nextBefore: null }
    const start = Number(query.before ?? 0)
    const end = start + (query.limit ?? 50)
    return { commands: all.slice(start, end), nextBefore: end < all.length ? String(end) : null }
  }
  const range = { from: NOW - 1000 * MINUTE, to: NOW }
  const first = await loadCommands(loadPage, range)
  t.equal(first.commands.length, 601)
  t.equal(first.next, '600')
  t.match(queries[0], { limit: 200, to: new Date(NOW).toISOString() })
  const second = await loadCommands(loadPage, range, first)
  t.equal(second.next, null)
  t.equal(second.commands.length, 1201, 'the last page begins in the range')
  t.equal(queries.length, 3 + 1 + 3)
  const short = await loadCommands(loadPage, { from: NOW - HOUR, to: NOW })
  t.equal(short.next, null)
  t.equal(short.commands.length, 201)
  const later = addNewest(second, { commands: [command('p_new', NOW + MINUTE)], next: '1' })
  t.equal(later?.commands.length, 1202, 'a live range keeps the earlier commands')
  t.equal(later?.next, null)
  t.equal(addNewest(null, first), first)
})

t.test('earlier prompts are those of the conversations that were active in the range', async (t) => {
  const range = { from: NOW - HOUR, to: NOW }
  const createRuns = (conversationId: string, count: number, minutes: number) =>
    Array.from({ length: count }, (_, index) =>
      createRun({ conversationId, startedAt: new Date(NOW - index * minutes * MINUTE).toISOString() }),
    )
  const runs = new Map([
    ['long', createRuns('long', 50, 1)],
    ['short', createRuns('short', 3, 1)],
  ])
  const listed: (string | null)[] = []
  const createConversation = (id: string, updatedAt: number, createdAt = updatedAt) => ({
    id,
    createdAt: new Date(createdAt).toISOString(),
    updatedAt: new Date(updatedAt).toISOString(),
  })
  const conversations = [
    createConversation('later', NOW + HOUR),
    createConversation('long', NOW, NOW - DAY),
    createConversation('short', NOW - MINUTE),
    createConversation('before', NOW - DAY),
  ]
  const prompts = {
    listConversations: async () => ({ conversations }) as never,
    async list(conversation: string | null) {
      listed.push(conversation)
      return { runs: runs.get(conversation ?? '') ?? [] } as never
    },
  }
  const earlier = await loadEarlierRuns(prompts, range)
  t.same(listed, ['long', 'short'])
  t.equal(earlier.runs.length, 53)
  t.equal(earlier.isComplete, false, 'the conversation has had more prompts in the hour')
  t.equal((await loadEarlierRuns(prompts, { from: NOW - 30 * MINUTE, to: NOW })).isComplete, true)
  const all = Array.from({ length: 50 }, (_, index) => createConversation(`c${index}`, NOW - index))
  const many = { ...prompts, listConversations: async () => ({ conversations: all }) as never }
  t.equal((await loadEarlierRuns(many, range)).isComplete, false, 'the list of conversations is at its limit')
  t.equal(hasEarlierRuns(createRuns('a', 49, 1), range), false)
  t.equal(hasEarlierRuns(createRuns('a', 50, 1), range), true)
  t.equal(hasEarlierRuns(createRuns('a', 50, 2), range), false, 'the list begins before the range')
})

t.test('earlier requests come from the audit log, page by page', async (t) => {
  const queries: URLSearchParams[] = []
  const loadPage = async (query: URLSearchParams) => {
    queries.push(query)
    const isFirst = !query.has('before')
    return { events: [{ id: isFirst ? 9 : 4 }], nextBefore: isFirst ? 9 : null } as never
  }
  const range = { from: NOW - HOUR, to: NOW }
  const first = await loadRequests(loadPage, 'b', range, null)
  const second = await loadRequests(loadPage, 'b', range, first)
  t.match(second, { requests: [{ id: 9 }, { id: 4 }], next: null })
  t.match(Object.fromEntries(queries[1] ?? []), {
    box: 'b',
    kind: /^box\.create,box\.wake,box\.suspend,/,
    since: '2026-11-27T11:00:00.000Z',
    until: '2026-11-27T12:00:00.000Z',
    before: '9',
  })
})

t.test('times, durations and sizes', (t) => {
  t.equal(formatLocalTime(NOW), '2026-11-27 13:00:00')
  t.equal(formatZone(NOW), 'Europe/Berlin, UTC+01:00')
  const durations = [0, 350, 1500, 59_960, 185_000, 2 * DAY + 4 * HOUR].map(formatDuration)
  t.same(durations, ['0 ms', '350 ms', '1.5 s', '1 min', '3 min 5 s', '2 d 4 h'])
  t.same([0, 1023, 1024, 1.25 * 2 ** 20, 1023.9].map(formatBytes), [
    '0 B',
    '1023 B',
    '1 KiB',
    '1.25 MiB',
    '1 KiB',
  ])
  t.end()
})
