// box prompts, conversations and interrupt: lists, one run, following, ids by prefix, and completion.
import t from 'tap'
import type { Client } from '../../cli/connection/client.ts'
import { loadAllPrompts } from '../../cli/prompts/all-prompts.ts'
import { startPromptCoordinator } from './coordinator-with-prompts.ts'
import { runBox } from './run-box.ts'

const coordinator = await startPromptCoordinator(t, { onStart: () => undefined })
const { submit, getRun, changeNext } = coordinator
const box = (...args: string[]) => runBox(coordinator, args)

const ZEROS = '0'.repeat(22)
const DONE_ID = `run_11${ZEROS}`
const RUNNING_ID = `run_12${ZEROS}`
const QUEUED_ID = `run_21${ZEROS}`
const FAILED_ID = `run_33${ZEROS}`
/** The conversation of the run that is done, and that of the other prompts. */
const [ENDED, OPEN] = [`cv_aa${ZEROS}`, `cv_bb${ZEROS}`]

await submit({
  runId: DONE_ID,
  newConversationId: ENDED,
  provider: 'codex',
  model: 'gpt-5',
  prompt: 'fix it\nplease\u001b[2J',
})
getRun(DONE_ID).emit('text', 'fixed')
getRun(DONE_ID).end('done')
await submit({ runId: RUNNING_ID, newConversationId: OPEN, prompt: 'add tests \u009b2J' })
await submit({ runId: QUEUED_ID, conversationId: OPEN, queue: true, prompt: 'later' })

t.test('lists queued prompts, runs in progress and ended runs', async (t) => {
  const { code, stdout } = await box('prompts', 'fig')
  t.equal(code, 0)
  t.same(
    stdout
      .trimEnd()
      .split('\n')
      .map((line) => line.split(/ {2,}/)),
    [
      ['ID', 'PROVIDER', 'MODEL', 'STATUS', 'STARTED', 'TOOK', 'EVENTS', 'PROMPT'],
      [QUEUED_ID, 'claude', '-', 'queued', '-', '-', '-', 'later'],
      [RUNNING_ID, 'claude', '-', 'running', '0s ago', '-', '0', 'add tests \uFFFD2J'],
      [DONE_ID, 'codex', 'gpt-5', 'done', '0s ago', '1.0s', '1', 'fix it …'],
    ],
  )
  t.match(await box('prompts', 'fig', '-q', '--filter', 'status=queued'), { stdout: `${QUEUED_ID}\n` })
  t.match(await box('prompts', 'fig', '-q', '--conversation', 'cv_bb'), {
    stdout: `${QUEUED_ID}\n${RUNNING_ID}\n`,
  })
  t.match(JSON.parse((await box('prompts', 'fig', '--json', '--filter', 'provider=codex')).stdout), {
    type: 'prompt.list',
    runs: [{ id: DONE_ID }],
    queued: [],
  })
  t.match(await box('prompts', 'fig', '--filter', 'status=asleep'), {
    code: 2,
    stderr: /Valid values: queued, running, done, failed, interrupted/,
  })
})

t.test('--all lists the prompts of all running boxes, and names the others', async (t) => {
  await coordinator.addBox('plum')
  await coordinator.addBox('lime')
  await box('stop', 'lime')
  // The agents of all boxes have the prompts of one.
  const { code, stdout, stderr } = await box('prompts', '--all', '--filter', 'provider=codex')
  t.equal(code, 0)
  t.equal(stderr, 'box: Not running, and so not asked: lime.\n')
  const rows = stdout
    .trimEnd()
    .split('\n')
    .map((line) => line.split(/ {2,}/).slice(0, 4))
  t.same(rows[0], ['BOX', 'ID', 'PROVIDER', 'MODEL'])
  t.same(
    new Set(rows.slice(1).map(([name, id]) => `${name} ${id}`)),
    new Set([`fig ${DONE_ID}`, `plum ${DONE_ID}`]),
  )
  t.match(await box('prompts', '--all', '-q', '--filter', 'box=plum'), {
    stdout: `${QUEUED_ID}\n${RUNNING_ID}\n${DONE_ID}\n`,
  })

  coordinator.failNext('GET /v1/box/plum/prompts', (response) => {
    response.writeHead(503).end('{"error":"box_unreachable","message":"The agent is not connected."}')
  })
  const partial = await box('prompts', '--all', '--json')
  t.match(
    partial.stderr,
    /plum is missing: The agent is not connected.* Not running, and so not asked: lime\./,
  )
  t.match(JSON.parse(partial.stdout), {
    prompts: [{ box: 'fig', id: QUEUED_ID, status: 'queued' }, { id: RUNNING_ID }, { id: DONE_ID }],
    unanswered: [{ box: 'plum', message: /The agent is not connected/ }],
    notRunning: ['lime'],
  })

  t.match(await box('prompts'), { code: 2, stderr: /Name a box, or use --all/ })
  t.match(await box('prompts', 'fig', '--all'), { code: 2, stderr: /Omit the name/ })
  t.match(await box('prompts', '--all', '-f'), { code: 2, stderr: /cannot be used with/ })
  t.match(await box('prompts', 'fig', '--filter', 'box=fig'), { code: 2, stderr: /is for --all/ })
  await box('rm', '-y', 'plum', 'lime')
})

t.test('--all names a box that does not respond in time', async (t) => {
  const never = (signal: AbortSignal) =>
    new Promise<never>((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason))
    })
  const client = {
    request: async () => ({
      boxes: [{ hostname: 'fig', observedState: 'running', desiredState: 'running' }],
    }),
    withSignal: (signal: AbortSignal) => ({
      createEdgeClient: async () => ({ requestJson: () => never(signal) }),
    }),
  } as unknown as Client
  const { rows, note } = await loadAllPrompts(client, new AbortController().signal, 1)
  t.same(rows, [])
  t.equal(note, 'fig is missing: no response within 0.001 seconds.')
})

t.test('shows one run with its whole prompt and stderr, by a prefix of its id', async (t) => {
  const addStderr = () =>
    changeNext(`GET /v1/box/fig/prompts/${DONE_ID}`, (body) => ({
      ...body,
      stderr: 'a warning\u001b[2J\nsecond line\n',
      stderrTruncated: true,
    }))
  for (const id of [DONE_ID, 'run_11', '11']) {
    addStderr()
    const { code, stdout } = await box('prompts', 'fig', id)
    t.equal(code, 0)
    t.match(stdout, /^status +done$/m)
    t.match(stdout, /^conversation +cv_aa0+$/m)
    t.match(
      stdout,
      /\n\nPrompt:\nfix it\nplease\uFFFD\[2J\n\nStandard error output \(the end\):\na warning\uFFFD\[2J\nsecond line\n$/,
    )
  }
  t.match(JSON.parse((await box('prompts', 'fig', '11', '--json')).stdout), {
    type: 'prompt.status',
    run: { prompt: /please/ },
  })
  t.match(await box('prompts', 'fig', 'run_1'), { code: 2, stderr: /matches 2 runs of fig.*run_11.*fix it/s })
  t.match(await box('prompts', 'fig', 'run_9'), { code: 5, stderr: /No such run on fig: 'run_9'/ })
  t.match(await box('prompts', 'fig', 'run_21'), { code: 5, stderr: /position in the queue is 1/ })
  t.match(await box('prompts', 'fig', '11', '--watch'), { code: 2, stderr: /Omit the run/ })
})

t.test('-f prints a run from its start, and exits with its status', async (t) => {
  t.match(await box('prompts', 'fig', '11', '-f'), { code: 0, stdout: 'fixed\n' })
  t.match(await box('prompts', 'fig', '11', '--follow', '--json'), {
    stdout: /^\{"type":"run",.*\n\{"seq":1,.*\n\{"type":"run\.done",.*\n$/,
  })
  getRun(RUNNING_ID).emit('text', 'busy')
  const newest = await runBox(coordinator, ['prompts', 'fig', '-f'], {
    onSpawn: (child) => child.stdout?.once('data', () => child.kill('SIGINT')),
  })
  t.match(newest, { code: 130, stdout: 'busy\n', stderr: /detached; the run continues on fig/ })
  t.equal(getRun(RUNNING_ID).status, 'running', 'Ctrl-C does not interrupt the run of another client')
  const queued = await runBox(coordinator, ['prompts', 'fig', 'run_21', '-f'], {
    onSpawn: (child) => child.stderr?.once('data', () => child.kill('SIGINT')),
  })
  t.match(queued, {
    code: 130,
    stderr: /^queued: position 1.*\nbox: detached; the prompt stays in the queue of fig/,
  })
  await submit({ runId: FAILED_ID, new: true })
  getRun(FAILED_ID).end('failed', 'no model')
  t.match(await box('prompts', 'fig', '33', '-f'), { code: 1, stderr: 'box: the run failed: no model\n' })
})

t.test('lists conversations', async (t) => {
  const { stdout } = await box('conversations', 'fig')
  t.match(stdout, /^ID +PROVIDER +MODEL +STATUS +PROMPTS +QUEUED +ACTIVE +LAST PROMPT\n/)
  t.match(stdout, /^cv_aa0+ +codex +gpt-5 +done +1 +0 +0s ago +fix it …$/m)
  t.match(await box('conversations', 'fig', '-q', '--filter', 'provider=codex'), {
    stdout: `${ENDED}\n`,
  })
  const json = (await box('conversations', 'fig', '--json')).stdout
  t.notMatch(json, '\u009b', 'a control character that JSON permits')
  t.match(JSON.parse(json), {
    type: 'prompt.conversations',
    conversations: [{}, { lastPrompt: 'add tests \u009b2J' }, {}],
    limit: 4,
  })
})

t.test('ids and conversations are completed', async (t) => {
  const complete = async (...words: string[]) =>
    (await box('__complete', '--', ...words)).stdout
      .trimEnd()
      .split('\n')
      .map((line) => line.split('\t')[0])
  t.same(await complete('prompts', 'fig', 'run_1'), [RUNNING_ID, DONE_ID])
  t.same(await complete('interrupt', 'fig', 'run_'), [QUEUED_ID, RUNNING_ID])
  t.same(await complete('prompts', 'fig', '--conversation', 'cv_aa'), [ENDED])
  t.same(await complete('prompt', 'fig', '-p', 'c'), ['claude', 'codex'])
  t.same(await complete('prompt', 'f'), ['fig'])
})

t.test('interrupts one run, several runs, a conversation, or all', async (t) => {
  t.match(await box('interrupt', 'fig', 'run_21', '11', 'run_9'), {
    code: 5,
    stderr: `${QUEUED_ID}: removed from the queue\n${DONE_ID}: already ended\nbox: No such run on fig: 'run_9'. Run \`box prompts fig\` to list runs.\n`,
  })
  t.same(await box('interrupt', 'fig', '--conversation', 'aa'), {
    code: 0,
    stdout: '',
    stderr: 'No runs in progress on fig.\n',
  })
  t.match(coordinator.requests.at(-1), { line: `POST /v1/box/fig/prompts/interrupt?conversation=${ENDED}` })
  t.same(await box('interrupt', 'fig'), {
    code: 0,
    stdout: '',
    stderr: `${RUNNING_ID}: interrupted (SIGINT)\n`,
  })
  t.match(JSON.parse((await box('interrupt', 'fig', '--json')).stdout), { interrupted: [] })
  t.match(await box('interrupt', 'fig', '11', '--conversation', 'aa'), {
    code: 2,
    stderr: /cannot be combined/,
  })
})

t.test('words of other tools name the command', async (t) => {
  for (const word of ['claude', 'codex', 'chat', 'ask', 'agent'])
    t.match(await box(word, 'fig', 'x'), { code: 2, stderr: /box prompt NAME/ })
  t.match(await box('session', 'fig'), { code: 2, stderr: /box conversations NAME.*box sessions NAME/ })
  t.match(await box('cancel', 'fig'), { code: 2, stderr: /box interrupt NAME.*box kill NAME ID/ })
  t.match(await box('prompt', 'fig', 'x', '--resume', 'y'), { code: 2, stderr: /Use -c/ })
  t.match(await box('prompt', 'fig', '- list'), { code: 2, stderr: /`--` before a prompt/ })
})

t.test('on a box that is not running, the message says what to do', async (t) => {
  const { id } = await coordinator.findBox('fig')
  await coordinator.api('POST', `/boxes/${id}/suspend`)
  await coordinator.waitForState(id, 'suspended')
  for (const command of ['prompts', 'conversations', 'interrupt'])
    t.match(await box(command, 'fig'), {
      code: 1,
      stderr: 'box: Box fig is not running. Start it with `box wake fig`. (box_not_running)\n',
    })
})
