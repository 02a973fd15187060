// box prompt: the request, the output, the exit code, the queue, and refusals.
import type { ChildProcess } from 'node:child_process'
import t from 'tap'
import { ApiError, type ErrorCode } from '../../shared/errors.ts'
import { runBoxInPty } from './box-in-pty.ts'
import { startPromptCoordinator } from './coordinator-with-prompts.ts'
import { type BoxOptions, runBox } from './run-box.ts'

const coordinator = await startPromptCoordinator(t)
const { hooks, submitted, submit, getRun, setSession, listPrompts, listConversations } = coordinator
t.afterEach(coordinator.reset)
const box = (args: string[], options: BoxOptions = {}) =>
  runBox(coordinator, args, { stdin: null, ...options })

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
  hooks.onStart = (run) => {
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
  t.same(submitted, [{ provider: 'claude', prompt: 'run the tests' }])
  t.match(await box(['prompt', 'fig', 'x', '--reasoning']), { stderr: /^I think\.\n> Bash/ })
  t.match(await box(['prompt', '-q', 'fig', 'x']), { stdout: /^First .*\nAll pass/, stderr: /^$/ })
})

t.test('the answer of a coding agent without text events is that of its last event', async (t) => {
  hooks.onStart = (run) => {
    run.emit('done', 'the answer')
    run.end('done')
  }
  t.match(await box(['prompt', 'fig', 'x']), { stdout: 'the answer\n' })
})

t.test('control characters of the box do not reach the terminal, and emoji do', async (t) => {
  hooks.onStart = (run) => {
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
  hooks.onStart = (run) => {
    run.emit('text', text)
    run.end('done')
  }
  const { stdout } = await box(['prompt', 'fig', 'x'])
  t.ok(stdout === `${text}\n`, `${stdout.length} characters`)
})

t.test('colours only on a terminal: tool calls dim, errors red', async (t) => {
  hooks.onStart = (run) => {
    run.emit('tool', null, { name: 'Bash', input: { command: 'x'.repeat(100) } })
    run.emit('error', 'quota exceeded')
    run.end('failed', 'quota exceeded')
  }
  const pty = runBoxInPty(t, coordinator, 'box prompt fig x; echo exit $?', { cols: 40 })
  await pty.waitFor(`\u001b[2m> Bash ${'x'.repeat(32)}…\u001b[22m\r\n`)
  await pty.waitFor('\u001b[31mquota exceeded\u001b[39m\r\n')
  await pty.waitFor('exit 1')
  t.equal(pty.output.match(/quota exceeded/g)?.length, 1, 'the error is printed once')
})

t.test('on a terminal, a slow start is shown until the run prints', async (t) => {
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  hooks.beforeSubmit = async () => {
    await released
    throw new ApiError('provider_not_installed', 'npm failed.')
  }
  const pty = runBoxInPty(t, coordinator, 'box prompt -p pi fig x; echo exit $?')
  await pty.waitFor('waiting for fig to start pi, and to install it if it is missing')
  release()
  await pty.waitFor('npm failed.')
  await pty.waitFor('exit 1')
})

t.test('--json prints the run, the events and the ended run, one object per line', async (t) => {
  hooks.onStart = (run) => {
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
  t.same(submitted.pop(), {
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
  t.match(submitted.pop(), { provider: 'pi' })
  t.match(await box(['prompt', 'fig', 'x'], { env: { BOXWOOD_PROVIDER: 'gpt' } }), {
    code: 2,
    stderr: /BOXWOOD_PROVIDER is 'gpt'.*claude, codex, opencode, pi/,
  })
})

t.test('-c and --conversation use the provider of the conversation', async (t) => {
  t.match(await box(['prompt', '-c', 'fig', 'x']), { code: 1, stderr: /no conversation on fig to continue/ })
  await submit({ provider: 'pi' })
  setSession(await submit({ provider: 'codex' }), 'session-1')
  const [second, first] = listConversations()
  t.match(await box(['prompt', '-c', 'fig', 'x']), { code: 0 })
  t.same(submitted.pop(), { provider: 'codex', conversationId: second?.id, prompt: 'x' })
  t.match(await box(['prompt', '-c', '-p', 'opencode', 'fig', 'x']), { code: 1, stderr: /Without -c/ })
  t.same(submitted.pop(), { provider: 'opencode', continue: true, prompt: 'x' })
  t.match(await box(['prompt', '--conversation', first?.id.slice(3, 11) ?? '', 'fig', 'x']), { code: 0 })
  t.same(submitted.pop(), { provider: 'pi', conversationId: first?.id, prompt: 'x' })
  t.match(await box(['prompt', '--conversation', 'cv_none', 'fig', 'x']), {
    code: 5,
    stderr: /No such conversation on fig: 'cv_none'/,
  })
  t.match(await box(['prompt', '-c', '--new', 'fig', 'x']), { code: 2, stderr: /cannot be used with/ })
})

t.test('-c wakes a suspended box: only the box knows its conversations', async (t) => {
  setSession(await submit(), 'session-2')
  const [conversation] = listConversations()
  const { id } = await coordinator.findBox('fig')
  await coordinator.api('POST', `/boxes/${id}/suspend`)
  await coordinator.waitForState(id, 'suspended')
  t.match(await box(['prompt', '-c', 'fig', 'x']), { code: 0 })
  t.match(await coordinator.findBox('fig'), { observedState: 'running' })
  t.match(submitted, [{ conversationId: conversation?.id }])
})

t.test('the prompt is read from stdin, byte for byte, up to 512 KiB', async (t) => {
  const text = `${'ü'.repeat(256 * 1024 - 1)} \n`
  t.match(await box(['prompt', 'fig', '-'], { stdin: text }), { code: 0 })
  t.equal(submitted.pop()?.prompt, text)
  t.match(await box(['prompt', 'fig'], { stdin: '\uFEFFfrom a pipe\n' }), { code: 0 })
  t.equal(submitted.pop()?.prompt, '\uFEFFfrom a pipe\n')
  await box(['prompt', 'fig', '3', '-', '2'], { stdin: 'ignored' })
  t.equal(submitted.pop()?.prompt, '3 - 2')
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
  const pty = runBoxInPty(t, coordinator, 'box prompt fig; echo exit $?')
  await pty.waitFor('The prompt is missing. Example: box prompt fig "')
  await pty.waitFor('exit 2')
  t.same(submitted, [])
})

t.test('-d prints the id of the run', async (t) => {
  hooks.onStart = () => undefined
  const { code, stdout, stderr } = await box(['prompt', '-d', 'fig', 'x'])
  const id = listPrompts().active?.id ?? ''
  t.same({ code, stdout, stderr }, { code: 0, stdout: `${id}\n`, stderr: '' })
  t.match(await box(['prompt', '-d', '--queue', 'fig', 'x']), {
    code: 0,
    stdout: `${listPrompts().queued[0]?.id}\n`,
    stderr: 'box: queued: position 1.\n',
  })
  t.match(JSON.parse((await box(['prompt', '-d', '--new', '--json', 'fig', 'x'])).stdout), {
    type: 'prompt.started',
  })
})

t.test('a queued prompt prints its position, waits, and prints its run', async (t) => {
  hooks.onStart = () => undefined
  const active = await submit()
  const first = (await box(['prompt', '-d', '--queue', 'fig', 'first'])).stdout.trimEnd()
  const result = await box(['prompt', '--queue', 'fig', 'second'], {
    onSpawn(child) {
      onText(child, 'position 2', () => getRun(active).end('done'))
      onText(child, 'position 1', () => {
        hooks.onStart = (run) => {
          run.emit('text', 'answer')
          run.end('done')
        }
        getRun(first).end('done')
      })
    },
  })
  t.same(result, {
    code: 0,
    stdout: 'answer\n',
    stderr: `queued: position 2, while ${active} is in progress\nqueued: position 1, while ${first} is in progress\n`,
  })
})

t.test('a prompt that another client removes from the queue is interrupted', async (t) => {
  hooks.onStart = () => undefined
  await submit()
  const result = await box(['prompt', '--queue', 'fig', 'x'], {
    onSpawn: (child) =>
      onText(child, 'position 1', () => {
        void coordinator.edge('fig', 'POST', `/prompts/${listPrompts().queued[0]?.id}/interrupt`)
      }),
  })
  t.match(result, { code: 130, stderr: /box: the prompt was removed from the queue\.\n$/ })
})

t.test('a failed run has exit code 1 and its error on stderr, an interrupted run 130', async (t) => {
  hooks.onStart = (run) => run.end('failed', 'The model does not exist.')
  t.match(await box(['prompt', 'fig', 'x']), {
    code: 1,
    stdout: '',
    stderr: 'box: the run failed: The model does not exist.\n',
  })
  hooks.onStart = (run) => run.end('interrupted', 'The box stopped during the run.')
  t.match(await box(['prompt', 'fig', 'x']), {
    code: 130,
    stderr: 'box: the run was interrupted: The box stopped during the run.\n',
  })
  hooks.onStart = (run) => run.end('interrupted', 'The run was interrupted by a request.')
  t.match(await box(['prompt', 'fig', 'x']), { stderr: 'box: The run was interrupted by a request.\n' })
})

/** The agent refuses the next prompt. */
const refuse = (code: ErrorCode, message?: string) => {
  hooks.beforeSubmit = async () => {
    throw new ApiError(code, message)
  }
}

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
  hooks.beforeSubmit = async () => undefined
  setSession(await submit(), 'session-3')
  refuse('prompt_in_progress', 'Run run_1 is in progress. Wait for it, interrupt it, or send queue or new.')
  t.match(await box(['prompt', '-c', 'fig', 'x']), {
    stderr:
      'box: Run run_1 is in progress. --queue waits for it. `box interrupt fig` interrupts it. (prompt_in_progress)\n',
  })
  refuse('prompt_limit_reached')
  t.notMatch((await box(['prompt', '--queue', 'fig', 'x'])).stderr, /--queue/)
  t.match(await box(['prompt', 'none', 'x']), { code: 5, stderr: /No such box: 'none'/ })
})
