// box prompt: the request, the output, the exit code, the queue, and refusals.
import type { ChildProcess } from 'node:child_process'
import t from 'tap'
import { ApiError, ERRORS, type ErrorCode, edgeErrorBody } from '../../shared/errors.ts'
import { runBoxInPty } from './box-in-pty.ts'
import { type FakeCoordinator, sendJson, startFakeCoordinator } from './fake-coordinator.ts'
import { addFakePrompts, createConversation, type FakePrompts } from './fake-prompts.ts'
import { type BoxOptions, runBox } from './run-box.ts'

let fake: FakeCoordinator
let prompts: FakePrompts
t.beforeEach(async (t) => {
  fake = await startFakeCoordinator(t)
  await fake.addBox('fig')
  prompts = addFakePrompts(fake)
})
const box = (args: string[], options: BoxOptions = {}) => runBox(fake.url, args, { stdin: null, ...options })

/** Except newlines. */
const CONTROL_CHARACTER = /(?!\n)[\p{Cc}\p{Cf}]/u

/** Calls `action` when stderr or stdout of the command contains `text`. */
const onText = (child: ChildProcess, text: string, action: () => void) => {
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (chunk: Buffer) => {
      const hadText = output.includes(text)
      output += chunk
      if (!hadText && output.includes(text)) action()
    })
}

t.test('text is on stdout; tool calls, results and notices are short lines on stderr', async (t) => {
  prompts.onStart = (run) => {
    run.emit('session', 'session-1')
    run.emit('reasoning', 'I think.')
    run.emit('text', 'First I run the tests.')
    run.emit('tool', null, { name: 'Bash', input: { command: 'npm test\necho end', description: 'Runs' } })
    run.emit('tool_result', 'ok 1\nok 2\nok 3\n', { name: 'Bash', input: null })
    run.emit('tool', null, { name: 'todo', input: { items: [1] } })
    run.emit('notice', 'retrying')
    run.emit('usage', '3 input tokens')
    run.emit('text', 'All pass.\tDone\n')
    run.emit('done', 'All pass.')
    run.end('done')
  }
  t.same(await box(['prompt', 'fig', 'run', 'the', 'tests']), {
    code: 0,
    stdout: 'First I run the tests.\nAll pass.\tDone\n',
    stderr: '> Bash npm test (+1 lines)\n  ok 1 (+2 lines)\n> todo {"items":[1]}\nnote: retrying\n',
  })
  t.same(prompts.requests, [{ provider: 'claude', prompt: 'run the tests' }])
  t.match(await box(['prompt', 'fig', 'x', '--reasoning']), { stderr: /^I think\.\n> Bash/ })
  t.match(await box(['prompt', '-q', 'fig', 'x']), { stdout: /^First .*\nAll pass/, stderr: /^$/ })
})

t.test('the answer of a coding agent without text events is that of its last event', async (t) => {
  prompts.onStart = (run) => {
    run.emit('done', 'the answer')
    run.end('done')
  }
  t.match(await box(['prompt', 'fig', 'x']), { stdout: 'the answer\n' })
})

t.test('control characters of the box do not reach the terminal, and emoji do', async (t) => {
  prompts.onStart = (run) => {
    run.emit('text', 'a\u001b]0;title\u0007\u009b2Jb\r\n👩‍💻\u202e')
    run.emit('tool', null, { name: 'B\u001b[2J', input: { command: '\u001b[2J' } })
    run.emit('tool_result', '\u001b[31mred', { name: 'B', input: null })
    run.emit('error', 'bad\u001b[2J')
    run.end('failed', 'worse\u001b[2J')
  }
  const { stdout, stderr } = await box(['prompt', 'fig', 'x'])
  t.equal(stdout, 'a\uFFFD]0;title\uFFFD\uFFFD2Jb\n👩‍💻\uFFFD\n')
  t.notMatch(stderr, CONTROL_CHARACTER)
  const json = await box(['prompt', '--json', 'fig', 'x'])
  t.notMatch(json.stdout, CONTROL_CHARACTER)
  t.match(JSON.parse(json.stdout.split('\n')[1] ?? ''), {
    type: 'text',
    text: 'a\u001b]0;title\u0007\u009b2Jb\r\n👩‍💻\u202e',
  })
})

t.test('the largest event arrives whole', async (t) => {
  const text = 'ü'.repeat(1_500_000)
  prompts.onStart = (run) => {
    run.emit('text', text)
    run.end('done')
  }
  const { stdout } = await box(['prompt', 'fig', 'x'])
  t.ok(stdout === `${text}\n`, `${stdout.length} characters`)
})

t.test('colours only on a terminal: tool calls dim, errors red', async (t) => {
  prompts.onStart = (run) => {
    run.emit('tool', null, { name: 'Bash', input: { command: 'x'.repeat(100) } })
    run.emit('error', 'quota exceeded')
    run.end('failed', 'quota exceeded')
  }
  const pty = runBoxInPty(t, fake.url, 'box prompt fig x; echo exit $?', { cols: 40 })
  await pty.waitFor(`\u001b[2m> Bash ${'x'.repeat(32)}…\u001b[22m\r\n`)
  await pty.waitFor('\u001b[31mquota exceeded\u001b[39m\r\n')
  await pty.waitFor('exit 1')
  t.equal(pty.output.match(/quota exceeded/g)?.length, 1, 'the error is printed once')
})

t.test('on a terminal, a slow start is shown until the run prints', async (t) => {
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  fake.handleNext('POST /v1/box/fig/prompts', async (response) => {
    await released
    sendJson(response, edgeErrorBody(new ApiError('provider_not_installed', 'npm failed.')), 409)
  })
  const pty = runBoxInPty(t, fake.url, 'box prompt -p pi fig x; echo exit $?')
  await pty.waitFor('waiting for fig to start pi, and to install it if it is missing')
  release()
  await pty.waitFor('npm failed.')
  await pty.waitFor('exit 1')
})

t.test('--json prints the run, the events and the ended run, one object per line', async (t) => {
  prompts.onStart = (run) => {
    run.emit('text', 'hi')
    run.end('failed', 'no more')
  }
  const { code, stdout, stderr } = await box(['prompt', '--json', 'fig', 'x'])
  t.equal(code, 1)
  t.match(
    stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line)),
    [
      { type: 'run', run: { status: 'running' } },
      { seq: 1, type: 'text', text: 'hi', raw: { line: 1 } },
      { type: 'run.done', run: { status: 'failed', error: 'no more' } },
    ],
  )
  t.same(JSON.parse(stderr), { error: { code: 'run_failed', message: 'the run failed: no more' } })
})

t.test('the options become fields of the request', async (t) => {
  await box('prompt fig -p codex -m openrouter/a --effort low -w src --queue --auto --new -- -x y'.split(' '))
  t.same(prompts.requests.pop(), {
    provider: 'codex',
    prompt: '-x y',
    model: 'openrouter/a',
    reasoningEffort: 'low',
    cwd: 'src',
    new: true,
    queue: true,
    auto: true,
  })
  await box(['prompt', 'fig', 'x'], { env: { BOXWOOD_PROVIDER: 'pi' } })
  t.match(prompts.requests.pop(), { provider: 'pi' })
  t.match(await box(['prompt', 'fig', 'x'], { env: { BOXWOOD_PROVIDER: 'gpt' } }), {
    code: 2,
    stderr: /BOXWOOD_PROVIDER is 'gpt'.*claude, codex, opencode, pi/,
  })
})

t.test('-c and --conversation use the provider of the conversation', async (t) => {
  t.match(await box(['prompt', '-c', 'fig', 'x']), { code: 1, stderr: /no conversation on fig to continue/ })
  const first = createConversation({ provider: 'pi', sessionId: null })
  const second = createConversation({ provider: 'codex' })
  prompts.conversations.push(first, second)
  await box(['prompt', '-c', 'fig', 'x'])
  t.same(prompts.requests.pop(), { provider: 'codex', conversationId: second.id, prompt: 'x' })
  await box(['prompt', '-c', '-p', 'opencode', 'fig', 'x'])
  t.same(prompts.requests.pop(), { provider: 'opencode', continue: true, prompt: 'x' })
  await box(['prompt', '--conversation', first.id.slice(3, 11), 'fig', 'x'])
  t.same(prompts.requests.pop(), { provider: 'pi', conversationId: first.id, prompt: 'x' })
  t.match(await box(['prompt', '--conversation', 'cv_none', 'fig', 'x']), {
    code: 5,
    stderr: /No such conversation on fig: 'cv_none'/,
  })
  t.match(await box(['prompt', '-c', '--new', 'fig', 'x']), { code: 2, stderr: /cannot be used with/ })
})

t.test('-c wakes a suspended box: only the box knows its conversations', async (t) => {
  const conversation = createConversation()
  prompts.conversations.push(conversation)
  fake.handleNext('GET /v1/box/fig/prompts/conversations', (response) =>
    sendJson(response, edgeErrorBody(new ApiError('box_not_running')), 409),
  )
  t.match(await box(['prompt', '-c', 'fig', 'x']), { code: 0 })
  t.ok(fake.requests.some(({ line }) => /^POST .*\/wake$/.test(line)))
  t.match(prompts.requests, [{ conversationId: conversation.id }])
})

t.test('the prompt is read from stdin, byte for byte, up to 512 KiB', async (t) => {
  const text = `${'ü'.repeat(256 * 1024 - 1)} \n`
  t.match(await box(['prompt', 'fig', '-'], { stdin: text }), { code: 0 })
  t.equal(prompts.requests.pop()?.prompt, text)
  t.match(await box(['prompt', 'fig'], { stdin: '\uFEFFfrom a pipe\n' }), { code: 0 })
  t.equal(prompts.requests.pop()?.prompt, '\uFEFFfrom a pipe\n')
  await box(['prompt', 'fig', '3', '-', '2'], { stdin: 'ignored' })
  t.equal(prompts.requests.pop()?.prompt, '3 - 2')
  for (const args of [['-'], []])
    t.match(await box(['prompt', 'fig', ...args], { stdin: `${text}x` }), {
      code: 2,
      stderr: /longer than 512 KiB.*box cp FILE fig:/,
    })
  t.match(await box(['prompt', 'fig'], { stdin: ' \n' }), { code: 2, stderr: /The prompt is empty/ })
  t.match(await box(['prompt', 'fig'], { stdin: Buffer.from([0x61, 0xff]) }), {
    code: 2,
    stderr: /not UTF-8/,
  })
  t.match(await box(['prompt', 'fig', ' ']), { code: 2, stderr: /missing/ })
  const pty = runBoxInPty(t, fake.url, 'box prompt fig; echo exit $?')
  await pty.waitFor('The prompt is missing. Example: box prompt fig "')
  await pty.waitFor('exit 2')
  t.same(prompts.requests, [])
})

t.test('-d prints the id of the run', async (t) => {
  prompts.onStart = () => undefined
  const { code, stdout, stderr } = await box(['prompt', '-d', 'fig', 'x'])
  const id = prompts.runs[0]?.run.id
  t.same({ code, stdout, stderr }, { code: 0, stdout: `${id}\n`, stderr: '' })
  prompts.queueNext()
  t.match(await box(['prompt', '-d', '--queue', 'fig', 'x']), {
    code: 0,
    stdout: /^run_\w{24}\n$/,
    stderr: 'box: queued: position 1.\n',
  })
  t.match(JSON.parse((await box(['prompt', '-d', '--json', 'fig', 'x'])).stdout), { type: 'prompt.started' })
})

t.test('a queued prompt prints its position, waits, and prints its run', async (t) => {
  const active = prompts.add()
  prompts.queueNext()
  await box(['prompt', '-d', 'fig', 'first'])
  prompts.queueNext()
  const result = await box(['prompt', '--queue', 'fig', 'second'], {
    onSpawn(child) {
      onText(child, 'position 2', () => void prompts.startQueued().end('done'))
      onText(child, 'position 1', () => {
        const run = prompts.startQueued()
        run.emit('text', 'answer')
        run.end('done')
      })
    },
  })
  t.same(result, {
    code: 0,
    stdout: 'answer\n',
    stderr: `queued: position 2, while ${active.run.id} is in progress\nqueued: position 1, while ${active.run.id} is in progress\n`,
  })
})

t.test('a prompt that another client removes from the queue is interrupted', async (t) => {
  prompts.queueNext()
  const result = await box(['prompt', '--queue', 'fig', 'x'], {
    onSpawn: (child) =>
      onText(child, 'position 1', () => {
        prompts.queued = []
      }),
  })
  t.match(result, { code: 130, stderr: /box: the prompt was removed from the queue\.\n$/ })
})

t.test('a failed run has exit code 1 and its error on stderr, an interrupted run 130', async (t) => {
  prompts.onStart = (run) => run.end('failed', 'The model does not exist.')
  t.match(await box(['prompt', 'fig', 'x']), {
    code: 1,
    stdout: '',
    stderr: 'box: the run failed: The model does not exist.\n',
  })
  prompts.onStart = (run) => run.end('interrupted', 'The box stopped during the run.')
  t.match(await box(['prompt', 'fig', 'x']), {
    code: 130,
    stderr: 'box: the run was interrupted: The box stopped during the run.\n',
  })
  prompts.onStart = (run) => run.end('interrupted', 'The run was interrupted by a request.')
  t.match(await box(['prompt', 'fig', 'x']), { stderr: 'box: The run was interrupted by a request.\n' })
})

const refuse = (code: ErrorCode, message: string = ERRORS[code][1]) =>
  fake.handleNext('POST /v1/box/fig/prompts', (response) =>
    sendJson(response, edgeErrorBody(new ApiError(code, message)), ERRORS[code][0]),
  )

t.test('a refusal says what to do with this command', async (t) => {
  const expected: [ErrorCode, string[], RegExp, number?][] = [
    ['provider_not_signed_in', [], /box ssh fig.*\(provider_not_signed_in\)\n$/],
    ['provider_not_installed', ['-p', 'codex'], /box exec fig npm install -g @openai\/codex/],
    ['prompt_in_progress', [], /--queue waits.*--new starts.*box interrupt fig/],
    ['no_session_to_continue', ['-p', 'pi', '-c'], /Without -c/],
    ['provider_mismatch', [], /box conversations fig/],
    ['prompt_limit_reached', [], /box prompts fig/],
    ['invalid_request', [], /not valid/, 2],
    ['not_found', [], /Not found/, 5],
  ]
  for (const [code, args, stderr, exitCode = 1] of expected) {
    refuse(code)
    t.match(await box(['prompt', ...args, 'fig', 'x']), { code: exitCode, stdout: '', stderr }, code)
  }
  prompts.conversations.push(createConversation())
  refuse('prompt_in_progress', 'Run run_1 is in progress. Wait for it, interrupt it, or send queue or new.')
  t.match(await box(['prompt', '-c', 'fig', 'x']), {
    stderr:
      'box: Run run_1 is in progress. --queue waits for it. `box interrupt fig` interrupts it. (prompt_in_progress)\n',
  })
  refuse('prompt_limit_reached')
  t.notMatch((await box(['prompt', '--queue', 'fig', 'x'])).stderr, /--queue/)
  t.match(await box(['prompt', 'none', 'x']), { code: 5, stderr: /No such box: 'none'/ })
})
