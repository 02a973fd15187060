// box ssh, attach, sessions and exec -it in a local pseudoterminal.
import { setTimeout } from 'node:timers/promises'
import t from 'tap'
import type { TerminalSession } from '../../shared/api/terminal.ts'
import { waitUntil } from '../support/wait-until.ts'
import { setAttachFaults } from './attach-faults.ts'
import { runBoxInPty } from './box-in-pty.ts'
import { startCliCoordinator } from './coordinator.ts'
import { runBox } from './run-box.ts'

const coordinator = await startCliCoordinator(t, ['fig'], { machines: 'local' })
const { edge } = coordinator
const run = (script: string, options: { env?: Record<string, string>; cols?: number; rows?: number } = {}) =>
  runBoxInPty(t, coordinator, script, options)
const box = (...args: string[]) => runBox(coordinator, args)
const listSessions = async (): Promise<TerminalSession[]> =>
  (await edge('fig', 'GET', '/terminal/sessions')).json.sessions
/** The session that was started last. */
const last = async () =>
  (await listSessions()).toSorted((a, b) => a.startedAt.localeCompare(b.startedAt)).at(-1)
/** Ends the sessions of earlier tests. */
t.beforeEach(async () => {
  for (const { session } of await listSessions()) await edge('fig', 'DELETE', `/terminal/sessions/${session}`)
  await waitUntil('the sessions end', async () => (await listSessions()).length === 0)
})
/** Prints the mode of the local terminal. */
const PRINT_MODE = 'case $(stty -a) in *-opost*|*-echo\\ *) echo is raw;; *) echo is normal;; esac'

t.test('ssh opens a new session, prints its name, and exits with the code of the shell', async (t) => {
  const terminal = run('box ssh fig; echo code=$?', { cols: 100, rows: 30 })
  await terminal.waitFor(/Session \S+ on fig\./)
  await terminal.waitFor('$ ')
  t.match(await last(), { cols: 100, rows: 30 })
  terminal.type('echo term=$TERM\r')
  await terminal.waitFor('term=xterm-256color')
  terminal.type('stty size\r')
  await terminal.waitFor('30 100')
  terminal.resize(70, 20)
  await waitUntil('the session has the new size', async () => {
    const { cols, rows } = (await last()) ?? {}
    return cols === 70 && rows === 20
  })
  // The process that receives SIGINT must have the default action: a shell between fork and execve has not.
  terminal.type(`sh -c 'echo rea""dy; exec sleep 60'\r`)
  await terminal.waitFor('ready')
  terminal.type('\x03')
  await terminal.waitFor('^C')
  terminal.type('exit 7\r')
  await terminal.waitFor('code=7')
})

t.test('the local terminal is in raw mode only during the session', async (t) => {
  const terminal = run(`box ssh fig; ${PRINT_MODE}`)
  await terminal.waitFor('$ ')
  // A newline moves the cursor down without a carriage return.
  terminal.type("stty raw; printf 'a\\nb'; stty sane\r")
  await terminal.waitFor('a\nb$ ')
  terminal.type('exit\r')
  await terminal.waitFor('is normal')
  t.match(await terminal.waitForExit(), { exitCode: 0 })
})

t.test('the local terminal is restored after a signal, and the session stays', async (t) => {
  const terminal = run(`sh -c 'echo pid=$$; exec $BOX ssh fig'; echo code=$?; ${PRINT_MODE}`)
  await terminal.waitFor('$ ')
  process.kill(Number(/pid=(\d+)/.exec(terminal.output)?.[1]), 'SIGTERM')
  await terminal.waitFor('code=143')
  await terminal.waitFor('is normal')
  t.ok(await last())
})

t.test('~d detaches and resets the modes, ~. disconnects with 255; the session stays', async (t) => {
  const terminal = run('box ssh fig -s work; echo code=$?; box ssh fig --session work; echo code=$?')
  await terminal.waitFor('Session work on fig')
  await terminal.waitFor('$ ')
  terminal.type("printf '\\033[?1049h\\033[?2004hin full screen'\r")
  await terminal.waitFor('\x1b[?2004hin full screen')
  terminal.type('\r~d')
  await terminal.waitFor('\x1b[?2004l\x1b[?1049l')
  await terminal.waitFor('detached from work; attach again: box attach fig work')
  await terminal.waitFor('code=0')
  t.ok(await last())
  // The second command attaches: the screen is drawn.
  await terminal.waitFor('\x1b[2J')
  await terminal.waitFor('in full screen')
  terminal.type('\r~.')
  await terminal.waitFor('disconnected from work')
  await terminal.waitFor('code=255')
  t.ok(await last())
  t.match(await listSessions(), [{ session: 'work' }])
})

t.test('~? lists the escape sequences, and ~~ sends a tilde', async (t) => {
  const terminal = run('box ssh fig')
  await terminal.waitFor('$ ')
  terminal.type('~?')
  await terminal.waitFor('~d  detach; the session stays\r\n')
  terminal.type('\r')
  await terminal.waitFor('$ ')
  terminal.type('~~x')
  await terminal.waitFor('~x')
  terminal.type('\x03')
  await terminal.waitFor('$ ')
  terminal.type('exit\r')
  t.match(await terminal.waitForExit(), { exitCode: 130 })
})

t.test('-e and -w apply to a new session', async (t) => {
  const terminal = run('box ssh fig -e COLOR=blue -w /')
  await terminal.waitFor('$ ')
  terminal.type('echo "$COLOR:$PWD."\r')
  await terminal.waitFor('blue:/.')
  terminal.type('exit\r')
  t.match(await terminal.waitForExit(), { exitCode: 0 })
})

t.test('attach shows the newest or the named session', async (t) => {
  const names = ['one', 'two']
  for (const session of names) {
    await edge('fig', 'POST', '/terminal/sessions', { session, command: `echo screen of ${session}; cat` })
    // The newest session is the one with the latest time.
    await setTimeout(10)
  }
  const terminal = run('box attach fig; box attach fig one; box attach fig missing')
  await terminal.waitFor('screen of two')
  terminal.type('~d')
  await terminal.waitFor('detached from two')
  await terminal.waitFor('screen of one')
  terminal.type('~d')
  await terminal.waitFor("No such terminal session on fig: 'missing'")
  t.match(await terminal.waitForExit(), { exitCode: 255 })
})

t.test('sessions lists the sessions and ends one', async (t) => {
  await edge('fig', 'POST', '/terminal/sessions', { session: 'build', command: 'cat' })
  const { stdout } = await box('sessions', 'fig')
  t.match(stdout, /^SESSION +PID +SIZE +CLIENTS +STARTED +ACTIVE +COMMAND\n/)
  t.match(stdout, /^build +\d+ +80x24 +0 +\d+s ago +\d+s ago +cat$/m)
  t.match(JSON.parse((await box('sessions', 'fig', '--json')).stdout), { type: 'terminal.list' })
  t.match(await box('sessions', 'fig', '--kill', 'build'), {
    code: 0,
    stderr: 'build: terminated (SIGHUP)\n',
  })
  await waitUntil('the session ends', async () => !(await box('sessions', 'fig')).stdout.includes('build'))
  t.match(await box('sessions', 'fig', '--kill', 'none'), { code: 5, stderr: /No such terminal session/ })
})

t.test('exec -it runs a command in a terminal', async (t) => {
  const terminal = run(
    'box exec -it fig -- \'tty -s && echo ready && read line && echo "got $line"; exit 4\'',
  )
  await terminal.waitFor('ready')
  terminal.type('typed\r')
  await terminal.waitFor('got typed')
  t.match(await terminal.waitForExit(), { exitCode: 4 })
})

t.test('without a terminal, ssh, attach and exec -t say what to use', async (t) => {
  t.match(await box('ssh', 'fig'), {
    code: 255,
    stderr: /stdin is not a terminal\. .*box exec fig -- COMMAND/,
  })
  t.match(await box('ssh', 'fig', '--', 'ls', '-l'), { code: 255, stderr: /box exec fig -- ls -l/ })
  t.match(await box('attach', 'fig'), { code: 255, stderr: /stdin is not a terminal/ })
  t.match(await box('exec', '-it', 'fig', '--', 'ls'), {
    code: 125,
    stderr: /not a terminal. Use -i without -t/,
  })
  t.match(await box('exec', '-t', '-d', 'fig', '--', 'ls'), { code: 125, stderr: /-t cannot be combined/ })
})

t.test('the screen is drawn again after the message about a long outage', async (t) => {
  const terminal = run("box exec -it fig -- 'stty -echo; echo on screen; cat; exit 5'")
  await terminal.waitFor('on screen')
  await coordinator.stopDuring(() => terminal.waitFor('disconnected. '))
  await terminal.waitFor('\x1b[2J')
  await terminal.waitFor('on screen')

  // The second connection is requested before the message is written.
  const reported = Promise.withResolvers<void>()
  setAttachFaults(coordinator, [{ kind: 'delay', until: reported.promise }])
  coordinator.closeConnections()
  await terminal.waitFor('disconnected. ')
  terminal.type('typed\r')
  reported.resolve()
  await terminal.waitFor('\x1b[2J')
  await terminal.waitFor('on screen')
  await terminal.waitFor('typed')
  terminal.type('\x04')
  t.match(await terminal.waitForExit(), { exitCode: 5 })
})

t.test('typed bytes and output are exact over connections that fail', async (t) => {
  const { countConnections } = setAttachFaults(coordinator, [
    { kind: 'cut_sent', afterBytes: 400 },
    { kind: 'error_response', code: 'box_unreachable' },
    { kind: 'cut_received', afterBytes: 700 },
    { kind: 'cut_sent', afterBytes: 700 },
    { kind: 'reset' },
    { kind: 'cut_received', afterBytes: 900 },
  ])
  const terminal = run("box exec -it fig -- 'stty -echo; echo ready; cat -n; exit 3'; echo code=$?")
  await terminal.waitFor('ready')
  const lines = Array.from({ length: 300 }, (_, index) => `line ${index}`)
  for (const [index, line] of lines.entries()) {
    terminal.type(`${line}\r`)
    if (index % 50 === 49) await terminal.waitFor(`line ${index}\r\n`)
  }
  terminal.type('\x04')
  await terminal.waitFor('code=3')
  const numbered = [...terminal.output.matchAll(/^ *(\d+)\tline (\d+)\r$/gm)].map(([, number, line]) => [
    Number(number),
    Number(line),
  ])
  t.same(
    numbered,
    lines.map((_, index) => [index + 1, index]),
  )
  t.ok(countConnections() > 6)
})
