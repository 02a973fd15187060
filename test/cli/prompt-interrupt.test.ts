// Ctrl-C and Ctrl-\ while box prompt follows a run, with and without a terminal.
import t, { type Test } from 'tap'
import { NO_TMUX, startTmux } from '../support/tmux.ts'
import { waitUntil } from '../support/wait-until.ts'
import { type BoxInPty, runBoxInPty } from './box-in-pty.ts'
import { type FakeCoordinator, KEY, startFakeCoordinator } from './fake-coordinator.ts'
import { addFakePrompts, type FakePrompts, type FakeRun } from './fake-prompts.ts'
import { runBox, TEST_PATH } from './run-box.ts'

let fake: FakeCoordinator
let prompts: FakePrompts
t.beforeEach(async (t) => {
  fake = await startFakeCoordinator(t)
  await fake.addBox('fig')
  prompts = addFakePrompts(fake)
  prompts.onStart = (run) => run.emit('text', 'working')
})
const first = (): FakeRun => {
  const [run] = prompts.runs
  if (run === undefined) throw new Error('no run')
  return run
}

/** Runs `box prompt` without a terminal and sends the signal when it prints `text`. */
const runWithSignal = (signal: NodeJS.Signals, text: string, ...args: string[]) =>
  runBox(fake.url, ['prompt', 'fig', 'x', ...args], {
    stdin: null,
    onSpawn(child) {
      let output = ''
      for (const stream of [child.stdout, child.stderr])
        stream?.on('data', (chunk: Buffer) => {
          const hadText = output.includes(text)
          output += chunk
          if (!hadText && output.includes(text)) child.kill(signal)
        })
    },
  })

t.test('without a terminal, Ctrl-C interrupts the run and prints its end', async (t) => {
  prompts.onInterrupt = (run) => {
    run.emit('text', 'stopping')
    run.end('interrupted', 'Interrupted by a request.')
  }
  const result = await runWithSignal('SIGINT', 'working')
  t.same(result, {
    code: 130,
    stdout: 'working\nstopping\n',
    stderr:
      'box: interrupting the run. Ctrl-C again to exit immediately.\nbox: the run was interrupted: Interrupted by a request.\n',
  })
  t.same(prompts.interrupts, [prompts.runs[0]?.run.id])
})

t.test('the status is that of the run, also when it is done before the interrupt', async (t) => {
  prompts.onInterrupt = (run) => run.end('done')
  t.match(await runWithSignal('SIGINT', 'working'), { code: 0, stdout: 'working\n' })
})

t.test('a second Ctrl-C exits while the run does not end', async (t) => {
  prompts.onInterrupt = () => undefined
  const result = runBox(fake.url, ['prompt', 'fig', 'x'], {
    stdin: null,
    onSpawn(child) {
      child.stdout?.once('data', () => child.kill('SIGINT'))
      child.stderr?.once('data', () => child.kill('SIGINT'))
    },
  })
  t.match(await result, { code: 130, stderr: /detached; the run continues on fig\.\n.*--follow\n/s })
})

t.test('an interrupt that fails is reported with the command to repeat it', async (t) => {
  fake.handleNext('POST /v1/box/fig/prompts/run', (response) => {
    response
      .writeHead(502)
      .end('{"ok":false,"error":{"code":"box_unreachable","message":"The box cannot be reached."}}')
  })
  t.match(await runWithSignal('SIGINT', 'working'), {
    code: 3,
    stderr: /could not interrupt the run\. The box cannot be reached\..*\n.*`box interrupt fig run_\w+`/,
  })
})

t.test('SIGTERM, SIGHUP and Ctrl-\\ detach from the run', async (t) => {
  for (const [signal, code] of [
    ['SIGTERM', 143],
    ['SIGHUP', 129],
    ['SIGQUIT', 0],
  ] as const) {
    const { code: actual, stderr } = await runWithSignal(signal, 'working')
    t.equal(actual, code, signal)
    const { id } = first().run
    t.match(
      stderr,
      new RegExp(`^box: detached; the run continues on fig\\.\nFollow it: +box prompts fig ${id}`),
    )
    t.equal(first().run.status, 'running')
  }
  t.same(prompts.interrupts, [])
})

t.test('Ctrl-C removes a queued prompt', async (t) => {
  prompts.queueNext()
  t.match(await runWithSignal('SIGINT', 'position 1', '--queue'), {
    code: 130,
    stderr: /box: removing the prompt from the queue\.\nbox: the prompt was removed from the queue\.\n$/,
  })
  t.same(prompts.queued, [])
})

async function startInTerminal(t: Test): Promise<BoxInPty> {
  const pty = runBoxInPty(t, fake.url, 'exec $BOX prompt fig x')
  await pty.waitFor('working\r\n')
  pty.type('\u0003')
  await pty.waitFor('Interrupt the run? [y] yes, [d] no, and detach from it, [n] no, continue: ')
  return pty
}

t.test('on a terminal Ctrl-C asks; the output waits for the answer', async (t) => {
  const pty = await startInTerminal(t)
  first().emit('text', 'meanwhile')
  pty.type('what\r')
  await pty.waitFor('Interrupt the run?')
  t.notMatch(pty.output, /meanwhile/)
  pty.type('n\r')
  await pty.waitFor('meanwhile\r\n')
  t.same(prompts.interrupts, [])
  pty.type('\u0003')
  await pty.waitFor('Interrupt the run?')
  pty.type('y\r')
  await pty.waitFor('interrupting the run')
  await pty.waitFor('the run was interrupted')
  t.match(await pty.waitForExit(), { exitCode: 130 })
  t.equal(prompts.interrupts.length, 1)
})

t.test('on a terminal Ctrl-C also asks after a prompt that was typed', async (t) => {
  const pty = runBoxInPty(t, fake.url, 'exec $BOX prompt fig -')
  pty.type('x\r\u0004')
  await pty.waitFor('working\r\n')
  pty.type('\u0003')
  await pty.waitFor('Interrupt the run?')
  first().emit('text', 'meanwhile')
  pty.type('n\r')
  await pty.waitFor('meanwhile\r\n')
  pty.type('\u0003')
  await pty.waitFor('Interrupt the run?')
  pty.type('y\r')
  await pty.waitFor('interrupting the run')
  t.match(await pty.waitForExit(), { exitCode: 130 })
  t.match(prompts.requests, [{ prompt: 'x\n' }])
})

t.test('a second Ctrl-C at the question interrupts', async (t) => {
  const pty = await startInTerminal(t)
  pty.type('\u0003')
  await pty.waitFor('interrupting the run')
  t.match(await pty.waitForExit(), { exitCode: 130 })
  t.equal(prompts.interrupts.length, 1)
})

t.test('the answer d detaches', async (t) => {
  const pty = await startInTerminal(t)
  pty.type('d\r')
  await pty.waitFor('detached; the run continues on fig.')
  t.match(await pty.waitForExit(), { exitCode: 0 })
  t.equal(first().run.status, 'running')
})

t.test('on a terminal Ctrl-C asks whether to remove a queued prompt', async (t) => {
  prompts.queueNext()
  const pty = runBoxInPty(t, fake.url, 'exec $BOX prompt --queue fig x')
  await pty.waitFor('queued: position 1')
  pty.type('\u0003')
  await pty.waitFor('Remove the prompt from the queue?')
  pty.type('n\r')
  prompts.startQueued().emit('text', 'started')
  await pty.waitFor('started\r\n')
  pty.type('\u0003')
  await pty.waitFor('Interrupt the run?')
  pty.type('d\r')
  await pty.waitFor('the run continues on fig.')
  t.match(await pty.waitForExit(), { exitCode: 0 })
})

t.test('a run that ends during the question is printed after the answer', async (t) => {
  const pty = await startInTerminal(t)
  first().emit('text', 'the end')
  first().end('done')
  pty.type('\r')
  await pty.waitFor('the end\r\n')
  t.match(await pty.waitForExit(), { exitCode: 0 })
})

t.test(
  'in tmux, Ctrl-C and y interrupt the run, and the shell works as before',
  { skip: NO_TMUX },
  async (t) => {
    const { CI: _, ...env } = process.env
    const tmux = await startTmux(t, {
      env: {
        PATH: `${TEST_PATH}:${env.PATH}`,
        BOXWOOD_URL: `${fake.url}/api/v1`,
        BOXWOOD_API_KEY: KEY,
      },
    })
    tmux.type(`'${process.execPath}' cli/main.ts prompt fig x; echo exit $?`)
    tmux.press('Enter')
    await tmux.waitFor(/^working$/m)
    tmux.press('C-c')
    await tmux.waitFor(/^Interrupt the run\?/m)
    tmux.type('y')
    tmux.press('Enter')
    await tmux.waitFor(/^exit 130$/m)
    tmux.type('echo typed')
    tmux.press('Enter')
    await tmux.waitFor(/^typed$/m)
    await waitUntil('the run has ended', () => first().run.status === 'interrupted')
  },
)
