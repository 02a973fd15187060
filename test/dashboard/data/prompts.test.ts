// The pure parts of the page of conversations: Markdown, blocks of events, and the feed of a box.

import t from 'tap'
import { type BoxwoodError, createError } from '../../../client/http/errors.ts'
import { createPrompts, type StreamHandlers } from '../../../dashboard/api/prompts.ts'
import {
  CODING_AGENTS,
  chooseAgent,
  describeReadiness,
  getAgentLabel,
} from '../../../dashboard/data/coding-agents.ts'
import { parseInline, parseMarkdown } from '../../../dashboard/data/markdown.ts'
import {
  countLines,
  diffLines,
  findDiffs,
  findToolIcon,
  formatInput,
  formatUsage,
  summarizeInput,
  sumUsage,
  toBlocks,
  toTitle,
} from '../../../dashboard/data/prompt-blocks.ts'
import { createPromptFeed, type PromptLists } from '../../../dashboard/data/prompt-feed.ts'
import { createPromptRuns } from '../../../dashboard/data/prompt-runs.ts'
import type { PromptEvent, ProviderReadiness } from '../../../shared/api/prompts.ts'
import { KNOWN_SECRETS } from '../../../shared/known-secrets.ts'
import { createEvent, createRun } from '../../support/fake-prompt-agent.ts'
import { waitUntil } from '../../support/wait-until.ts'

t.test('Markdown: blocks', async (t) => {
  const text = [
    '# Title *x*',
    'first',
    'second',
    '',
    '- a',
    '  - b',
    '    more',
    '1. one',
    '```js',
    '<b>**not bold**</b>',
    '```',
    '> quoted',
    '| a | b |',
    '---',
    '~~~',
    'open',
  ].join('\r\n')
  t.match(parseMarkdown(text), [
    { kind: 'heading', level: 1 },
    { kind: 'paragraph', children: [{ kind: 'text', text: 'first\nsecond' }] },
    {
      kind: 'list',
      isOrdered: false,
      items: [
        { depth: 0, children: [{ text: 'a' }] },
        { depth: 1, children: [{ text: 'b\nmore' }] },
      ],
    },
    { kind: 'list', isOrdered: true, start: 1, items: [{ children: [{ text: 'one' }] }] },
    { kind: 'code', text: '<b>**not bold**</b>' },
    { kind: 'quote', children: [{ text: 'quoted' }] },
    { kind: 'code', text: '| a | b |' },
    { kind: 'rule' },
    { kind: 'code', text: 'open' },
  ])
})

t.test('Markdown: inline', async (t) => {
  const cases: [string, unknown][] = [
    ['a **b `c`** d', [{ text: 'a ' }, { kind: 'strong', children: [{ text: 'b ' }, { text: 'c' }] }, {}]],
    ['*em* _em_', [{ kind: 'emphasis' }, { text: ' ' }, { kind: 'emphasis' }]],
    ['snake_case_name 2 * 3 * 4 **open', [{ kind: 'text', text: 'snake_case_name 2 * 3 * 4 **open' }]],
    ['``a ` b``', [{ kind: 'code', text: 'a ` b' }]],
    [
      '[x](https://a.example/b "t").',
      [{ kind: 'link', url: 'https://a.example/b', children: [{ text: 'x' }] }, { text: '.' }],
    ],
    ['see https://a.example/x.', [{}, { kind: 'link', url: 'https://a.example/x' }, { text: '.' }]],
    ['<img src=x onerror=alert(1)>', [{ kind: 'text', text: '<img src=x onerror=alert(1)>' }]],
  ]
  for (const [text, expected] of cases) t.match(parseInline(text), expected as object, text)
  for (const text of [
    '[x](javascript:alert(1))',
    '[x](data:text/html,x)',
    '![x](https://a.example/i.png)',
    '[x](//a.example)',
    '[x](https://)',
  ])
    t.ok(
      parseInline(text).every((node) => node.kind !== 'link' || !/^(javascript|data)/.test(node.url)),
      text,
    )
  t.equal(parseInline('![x](https://a.example/i.png)').filter(({ kind }) => kind === 'link').length, 1)
})

t.test('Markdown: the time does not explode', async (t) => {
  for (const part of [
    '*',
    '_a ',
    '`',
    '[',
    '[](',
    'h',
    'http://',
    '**a ',
    '> ',
    '- ',
    '``` ',
    '![a](',
    '*a**b',
  ])
    t.ok(parseMarkdown(part.repeat(100_000 / part.length)), part)
})

const events = (...list: Partial<PromptEvent>[]) =>
  list.map((fields, index) => createEvent(index + 1, { text: null, ...fields }))

t.test('blocks: results belong to their calls', async (t) => {
  const blocks = toBlocks(
    events(
      { type: 'session', text: 's' },
      { type: 'reasoning', text: 'hm' },
      { type: 'tool', tool: { name: 'Bash', input: { command: 'ls\npwd' } } },
      { type: 'tool', tool: { name: 'Read', input: { file_path: '/a' } } },
      { type: 'tool_result', text: 'content', tool: { name: 'Read', input: null } },
      { type: 'tool_result', text: 'listing', tool: { name: 'Bash', input: null } },
      { type: 'tool_result', text: 'alone', tool: { name: 'X', input: null } },
      { type: 'text', text: ' ' },
      { type: 'text', text: 'answer' },
      { type: 'tool', tool: { name: 'Bash', input: {} } },
      { type: 'done' },
    ),
  )
  t.match(blocks, [
    { kind: 'reasoning' },
    { kind: 'tool', name: 'Bash', summary: 'ls', result: 'listing' },
    { kind: 'tool', name: 'Read', summary: '/a', result: 'content' },
    { kind: 'tool', name: 'X', result: 'alone' },
    { kind: 'text', text: 'answer' },
    { kind: 'tool', name: 'Bash', summary: '', result: undefined },
  ])
  t.equal(blocks.length, 6)
  t.equal(summarizeInput({ command: ['git', 'log'] }), 'git log')
  t.equal(summarizeInput({ other: 1 }), '{"other":1}')
  t.equal(summarizeInput(null), '')
})

t.test('tool calls have an icon, and the time that they took', async (t) => {
  const [call] = toBlocks(
    events(
      { type: 'tool', tool: { name: 'Bash', input: {} }, at: '2026-01-01T00:00:00.000Z' },
      { type: 'tool_result', tool: { name: 'Bash', input: null }, at: '2026-01-01T00:00:02.000Z' },
    ),
  )
  t.match(call, { icon: 'shell', startedAt: /00:00.000Z$/, finishedAt: /00:02.000Z$/ })
  for (const [icon, names] of Object.entries({
    shell: ['Bash', 'command_execution', 'BashOutput'],
    edit: ['Edit', 'MultiEdit', 'Write', 'apply_patch', 'file_change'],
    file: ['Read', 'view'],
    search: ['Grep', 'Glob', 'ls'],
    web: ['WebFetch', 'web_search'],
    plan: ['TodoWrite', 'todo_list'],
    agent: ['Task'],
    other: ['github.get_me', ''],
  }))
    for (const name of names) t.equal(findToolIcon(name), icon, name)
})

t.test('the input of a tool', async (t) => {
  t.equal(formatInput({ command: 'ls' }, 'ls'), null, 'the title has it')
  t.equal(formatInput({ command: 'ls\npwd' }, 'ls'), 'ls\npwd')
  t.equal(formatInput({ file_path: '/a', limit: 3 }, '/a'), 'file_path: /a\nlimit: 3')
  t.equal(formatInput({ items: [1] }, '{"items":[1]}'), '[\n  1\n]')
  t.equal(formatInput('text', 'text'), null)
  for (const input of [null, {}]) t.equal(formatInput(input, ''), null)
})

t.test('usage', async (t) => {
  const steps = events(
    { type: 'usage', text: '1000 input tokens, 20 output tokens, 0.0012 USD' },
    { type: 'usage', text: '500 input tokens, 5 output tokens, 1e-3 USD' },
    { type: 'text', text: '9 input tokens' },
  )
  t.same(sumUsage(steps, true), { input: 1500, output: 25, cost: 0.0022 })
  t.same(sumUsage(steps, false), { input: 500, output: 5, cost: 0.001 })
  t.same(sumUsage(events({ type: 'usage', text: '<b> input tokens' }), true), {
    input: null,
    output: null,
    cost: null,
  })
  t.same(formatUsage({ input: 12345, output: 6, cost: 0.0012 }), ['12,345 tokens in', '6 out', '$0.0012'])
  t.same(formatUsage({ input: null, output: null, cost: 1.5 }), ['$1.50'])
})

t.test('the title of a conversation is the first line of its prompt', async (t) => {
  t.equal(toTitle('\n fix it\nnow'), 'fix it')
  t.equal(toTitle('x'.repeat(200)), `${'x'.repeat(120)}…`)
})

t.test('diffs of the four coding agents', async (t) => {
  t.same(diffLines('a\nb\nc', 'a\nx\ny\nc'), [
    { kind: 'same', text: 'a' },
    { kind: 'removed', text: 'b' },
    { kind: 'added', text: 'x' },
    { kind: 'added', text: 'y' },
    { kind: 'same', text: 'c' },
  ])
  t.same(diffLines('a\na', 'a'), [
    { kind: 'same', text: 'a' },
    { kind: 'removed', text: 'a' },
  ])
  const changed = [
    { kind: 'removed', text: 'b' },
    { kind: 'added', text: 'c' },
  ]
  for (const input of [
    { file_path: '/f', old_string: 'b', new_string: 'c' },
    { filePath: '/f', oldString: 'b', newString: 'c' },
    { path: '/f', oldText: 'b', newText: 'c' },
    { file_path: '/f', edits: [{ old_string: 'b', new_string: 'c' }] },
    { changes: [{ path: '/f', kind: 'update', diff: '-b\n+c' }] },
  ])
    t.same(findDiffs(input), [{ path: '/f', lines: changed }], JSON.stringify(input))
  t.same(countLines(findDiffs({ path: '/f', oldText: 'a\nb', newText: 'a\nc\nd' })), {
    added: 2,
    removed: 1,
    all: 4,
  })
  t.same(findDiffs({ path: '/f', content: 'x\n' }), [{ path: '/f', lines: [{ kind: 'added', text: 'x' }] }])
  for (const input of [null, 'x', [], { command: 'ls' }, { changes: [{ path: '/f', kind: 'update' }] }])
    t.same(findDiffs(input), [])
})

t.test('coding agents', async (t) => {
  const describe = (name: string, readiness?: ProviderReadiness) =>
    CODING_AGENTS.filter((agent) => agent.name === name).map((agent) => describeReadiness(agent, readiness))
  t.same(describe('codex', 'not_installed'), ['not installed'])
  t.same(describe('pi', 'not_installed'), ['installed by its first prompt'])
  t.same(describe('claude', 'not_signed_in'), ['not signed in'])
  t.same(describe('claude'), ['not reported yet'])
  t.equal(getAgentLabel('opencode'), 'OpenCode')
  for (const { variable, host } of CODING_AGENTS.flatMap(({ keys }) => keys))
    t.same(KNOWN_SECRETS[variable]?.hosts, [host], variable)
  t.equal(chooseAgent(null), 'claude')
  t.equal(
    chooseAgent({ claude: 'not_installed', codex: 'not_signed_in', opencode: 'ready', pi: 'ready' }),
    'opencode',
  )
})

t.test('events of a run are kept once', async (t) => {
  const runs = createPromptRuns(() => undefined)
  const [first, second, third] = events({ text: '1' }, { text: '2' }, { text: '3' }) as [
    PromptEvent,
    PromptEvent,
    PromptEvent,
  ]
  runs.add('run_1', [first, { ...second, raw: { type: 'system', model: 'claude-opus-5' } }])
  runs.add('run_1', [second, third])
  t.same(
    runs.get('run_1').events.map(({ text }) => text),
    ['1', '2', '3'],
  )
  t.equal(runs.get('run_1').model, 'claude-opus-5', 'the coding agent reports its model')
  runs.add('run_2', [{ ...first, raw: { message: { model: 'gpt-5' } } }])
  t.equal(runs.get('run_2').model, 'gpt-5')
  t.notOk('raw' in (runs.get('run_1').events[0] ?? {}), 'the line of the coding agent is not kept')
})

t.test('the stream is parsed, and its end is known', async (t) => {
  const run = createRun()
  const requests: [string, RequestInit | undefined][] = []
  let body = ''
  const prompts = createPrompts({
    send: () => Promise.reject(new Error('unused')),
    async open(path, init) {
      requests.push([path, init])
      return Object.assign(new Response(body), { cancel: () => undefined })
    },
  })
  const seen: string[] = []
  const handlers: StreamHandlers = {
    onRun: ({ id }) => seen.push(`run ${id}`),
    onEvent: (id, { seq }) => seen.push(`${id} ${seq}`),
    onRunDone: ({ id }) => seen.push(`done ${id}`),
    onPosition: (id) => seen.push(`at ${id}`),
  }
  const format = (name: string, id: string, data: object) =>
    `event: ${name}\nid: ${id}\ndata: ${JSON.stringify(data)}\n\n`
  const { signal } = new AbortController()
  body = [
    ': keep-alive\n\n',
    format('run', 'a', { run }),
    format('prompt', 'b', { runId: run.id, ...createEvent(1) }),
    format('error', 'c', { code: 'not_found', message: 'One run.' }),
    format('run.done', 'd', { run, next: 1 }),
    format('done', 'e', {}),
  ].join('')
  await prompts.follow('', signal, handlers)
  t.same(seen, [
    ...[`run ${run.id}`, 'at a', `${run.id} 1`, 'at b', 'at c', `done ${run.id}`, 'at d', 'at e'],
  ])
  body = format('error', 'f', { code: 'box_unreachable', message: 'Gone.' })
  await t.rejects(prompts.follow('e', signal, handlers), { code: 'box_unreachable' })
  t.match(requests[1]?.[1], { headers: { 'last-event-id': 'e' } })
  body = ': keep-alive\n\n'
  await t.rejects(prompts.follow('e', signal, handlers), { code: 'no_response' })
})

t.test('the feed streams while runs are in progress, and resumes', async (t) => {
  const run = createRun()
  let running = 0
  const positions: string[] = []
  let streams: { handlers: StreamHandlers; resolve(): void; reject(error: Error): void }[] = []
  const lists: PromptLists[] = []
  const errors: (BoxwoodError | null)[] = []
  let failure: BoxwoodError | null = null
  const seen: string[] = []
  /** False: other tabs have all streams. */
  let hasSlot = true
  const loaded: string[] = []
  const feed = createPromptFeed({
    prompts: {
      async list() {
        if (failure) throw failure
        return { ok: true, type: 'prompt.list', runs: [run], active: running ? run : null, queued: [] }
      },
      listConversations: async () => ({
        ok: true,
        type: 'prompt.conversations',
        conversations: [],
        running,
        limit: 4,
      }),
      follow: (lastEventId, signal, handlers) =>
        new Promise((resolve, reject) => {
          positions.push(lastEventId)
          streams.push({ handlers, resolve, reject })
          signal.addEventListener('abort', () => reject(signal.reason))
        }),
    },
    acquireStream: async () => (hasSlot ? () => seen.push('released') : null),
    async loadEvents(id) {
      loaded.push(id)
      hasSlot = loaded.length > 1
    },
    wait: (ms, signal) =>
      ms < 5_000
        ? Promise.resolve()
        : new Promise((resolve) => signal.addEventListener('abort', () => resolve())),
    onLists: (value) => lists.push(value),
    onRun: ({ id }, isFinished) => seen.push(`${id} ${isFinished}`),
    onEvent: (id, { seq }) => seen.push(`${id} ${seq}`),
    onError: (error) => errors.push(error),
  })
  const streamCount = (count: number) => waitUntil(`${count} streams`, () => streams.length === count)
  feed.start()
  await waitUntil('the lists are there', () => lists.length === 1)
  t.equal(streams.length, 0, 'no stream without a run')
  running = 1
  await feed.refresh()
  await streamCount(1)
  streams[0]?.handlers.onEvent(run.id, createEvent(1))
  streams[0]?.handlers.onPosition('p1')
  streams[0]?.reject(createError({ code: 'no_response', message: 'Lost.', status: 0 }))
  await streamCount(2)
  feed.stop()
  feed.start()
  await streamCount(3)
  running = 0
  streams[2]?.handlers.onRunDone(run)
  streams[2]?.handlers.onPosition('p2')
  streams[2]?.resolve()
  await feed.refresh()
  t.equal(streams.length, 3, 'no stream after the end of the last run')
  failure = createError({ code: 'box_unreachable', message: 'Gone.', status: 503 })
  await feed.refresh()
  t.match(errors.at(-1), { code: 'box_unreachable' })
  failure = null
  running = 1
  await feed.refresh()
  t.equal(errors.at(-1), null)
  await streamCount(4)
  t.same(positions, ['', 'p1', 'p1', 'p2'])
  t.same(seen, [`${run.id} 1`, 'released', 'released', `${run.id} true`, 'released'])
  t.same(loaded, [])
  hasSlot = false
  streams[3]?.reject(createError({ code: 'no_response', message: 'Lost.', status: 0 }))
  await streamCount(5)
  t.same(loaded, [run.id, run.id], 'the events are polled until there is a slot')
  feed.stop()
  streams = []
})
