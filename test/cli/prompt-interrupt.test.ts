// Ctrl-C and Ctrl-\ while box prompt follows a run, with and without a terminal.
import t, { type Test } from 'tap'
import { NO_TMUX, startTmux } from '../support/tmux.ts'
import { waitUntil } from '../support/wait-until.ts'
import { type BoxInPty, runBoxInPty } from './box-in-pty.ts'
import { startPromptCoordinator, type TestRun } from './coordinator-with-prompts.ts'
import { runBox, TEST_PATH } from './run-box.ts'

const coordinator = await startPromptCoordinator(t, { onStart: (run) => run.emit('text', 'working') })
const { hooks, submit, getRun, listRuns, listPrompts } = coordinator
t.afterEach(coordinator.reset)

const newestRun = (): TestRun => {
  const [run] = listRuns()
  if (run === undefined) throw new Error('no run')
  return run
}

let firstRequest = 0
t.beforeEach(() => {
  firstRequest = coordinator.requests.length
})
/** The requests of the test that interrupt. */
const getInterrupts = (): string[] =>
  coordinator.requests
    .slice(firstRequest)
    .map(({ line }) => line)
    .filter((line) => line.endsWith('/interrupt'))

/** Runs `box prompt` without a terminal and sends the signal when it prints `text`. */
const runWithSignal = (signal: NodeJS.Signals, text: string, ...args: string[]) =>
  runBox(coordinator, ['prompt', 'fig', 'x', ...args], {
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
  hooks.onInterrupt = (run) => {
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
  t.same(getInterrupts(), [`POST /v1/box/fig/prompts/${newestRun().id}/interrupt`])
})

t.test('the status is that of the run, also when it is done before the interrupt', async (t) => {
  hooks.onInterrupt = (run) => run.end('done')
  t.match(await runWithSignal('SIGINT', 'working'), { code: 0, stdout: 'working\n' })
})

t.test('a second Ctrl-C exits while the run does not end', async (t) => {
  hooks.onInterrupt = () => undefined
  const result = runBox(coordinator, ['prompt', 'fig', 'x'], {
    stdin: null,
    onSpawn(child) {
      child.stdout?.once('data', () => child.kill('SIGINT'))
      child.stderr?.once('data', () => child.kill('SIGINT'))
    },
  })
  t.match(await result, { code: 130, stderr: /detached; the run continues on fig\.\n.*--follow\n/s })
})

t.test('an interrupt that fails is reported with the command to repeat it', async (t) => {
  coordinator.respondNext('POST /v1/box/fig/prompts/run', 502, {
    ok: false,
    error: { code: 'box_unreachable', message: 'The box cannot be reached.' },
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
    const { id } = newestRun()
    t.match(
      stderr,
      new RegExp(`^box: detached; the run continues on fig\\.\nFollow it: +box prompts fig ${id}`),
    )
    t.equal(newestRun().status, 'running')
    newestRun().end('done')
  }
  t.same(getInterrupts(), [])
})

t.test('Ctrl-C removes a queued prompt', async (t) => {
  await submit()
  t.match(await runWithSignal('SIGINT', 'position 1', '--queue'), {
    code: 130,
    stderr: /box: removing the prompt from the queue\.\nbox: the prompt was removed from the queue\.\n$/,
  })
  t.same(listPrompts().queued, [])
})

async function startInTerminal(t: Test): Promise<BoxInPty> {
  const pty = runBoxInPty(t, coordinator, 'exec $BOX prompt fig x')
  await pty.waitFor('working\r\n')
  pty.type('\u0003')
  await pty.waitFor('Interrupt the run? [y] yes, [d] no, and detach from it, [n] no, continue: ')
  return pty
}

t.test('on a terminal Ctrl-C asks; the output waits for the answer', async (t) => {
  const pty = await startInTerminal(t)
  newestRun().emit('text', 'meanwhile')
  pty.type('what\r')
  await pty.waitFor('Interrupt the run?')
  t.notMatch(pty.output, /meanwhile/)
  pty.type('n\r')
  await pty.waitFor('meanwhile\r\n')
  t.same(getInterrupts(), [])
  pty.type('\u0003')
  await pty.waitFor('Interrupt the run?')
  pty.type('y\r')
  await pty.waitFor('interrupting the run')
  await pty.waitFor('The run was interrupted by a request.')
  t.match(await pty.waitForExit(), { exitCode: 130 })
  t.equal(getInterrupts().length, 1)
})

t.test('on a terminal Ctrl-C also asks after a prompt that was typed', async (t) => {
  const pty = runBoxInPty(t, coordinator, 'exec $BOX prompt fig -')
  pty.type('x\r\u0004')
  await pty.waitFor('working\r\n')
  pty.type('\u0003')
  await pty.waitFor('Interrupt the run?')
  newestRun().emit('text', 'meanwhile')
  pty.type('n\r')
  await pty.waitFor('meanwhile\r\n')
  pty.type('\u0003')
  await pty.waitFor('Interrupt the run?')
  pty.type('y\r')
  await pty.waitFor('interrupting the run')
  t.match(await pty.waitForExit(), { exitCode: 130 })
  t.match(coordinator.submitted, [{ prompt: 'x\n' }])
})

t.test('a second Ctrl-C at the question interrupts', async (t) => {
  const pty = await startInTerminal(t)
  pty.type('\u0003')
  await pty.waitFor('interrupting the run')
  t.match(await pty.waitForExit(), { exitCode: 130 })
  t.equal(getInterrupts().length, 1)
})

t.test('the answer d detaches', async (t) => {
  const pty = await startInTerminal(t)
  pty.type('d\r')
  await pty.waitFor('detached; the run continues on fig.')
  t.match(await pty.waitForExit(), { exitCode: 0 })
  t.equal(newestRun().status, 'running')
})

t.test('on a terminal Ctrl-C asks whether to remove a queued prompt', async (t) => {
  const active = await submit()
  const pty = runBoxInPty(t, coordinator, 'exec $BOX prompt --queue fig x')
  await pty.waitFor('queued: position 1')
  pty.type('\u0003')
  await pty.waitFor('Remove the prompt from the queue?')
  pty.type('n\r')
  getRun(active).end('done')
  await pty.waitFor('working\r\n')
  pty.type('\u0003')
  await pty.waitFor('Interrupt the run?')
  pty.type('d\r')
  await pty.waitFor('the run continues on fig.')
  t.match(await pty.waitForExit(), { exitCode: 0 })
})

t.test('a run that ends during the question is printed after the answer', async (t) => {
  const pty = await startInTerminal(t)
  newestRun().emit('text', 'the end')
  newestRun().end('done')
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
        BOXWOOD_URL: `${coordinator.url}/api/v1`,
        BOXWOOD_API_KEY: coordinator.key,
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
    await waitUntil('the run has ended', () => newestRun().status === 'interrupted')
  },
)
