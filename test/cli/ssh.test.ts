// box ssh, attach, sessions and exec -it in a local pseudoterminal.
import t from 'tap'
import { waitUntil } from '../support/wait-until.ts'
import { runBoxInPty } from './box-in-pty.ts'
import type { AttachFault } from './fake-attach.ts'
import { startFakeCoordinator } from './fake-coordinator.ts'
import { runBox } from './run-box.ts'

const fake = await startFakeCoordinator(t)
await fake.addBox('fig')
const { attached, terminals } = fake
const run = (script: string, options: { env?: Record<string, string>; cols?: number; rows?: number } = {}) =>
  runBoxInPty(t, fake.url, script, options)
const box = (...args: string[]) => runBox(fake.url, args)
const last = () => {
  const terminal = terminals.all.at(-1)
  if (terminal === undefined) throw new Error('no terminal was started')
  return terminal
}
/** Prints the mode of the local terminal. */
const PRINT_MODE = 'case $(stty -a) in *-opost*|*-echo\\ *) echo is raw;; *) echo is normal;; esac'

t.test('ssh opens a new session, prints its name, and exits with the code of the shell', async (t) => {
  const terminal = run('box ssh fig; echo code=$?', { cols: 100, rows: 30 })
  await terminal.waitFor('Session session-1 on fig.')
  await terminal.waitFor('$ ')
  t.match(last().request, { term: 'xterm-256color', cols: 100, rows: 30 })
  terminal.type('stty size\r')
  await terminal.waitFor('30 100')
  terminal.resize(70, 20)
  await waitUntil('the session has the new size', () => last().pty.cols === 70 && last().pty.rows === 20)
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
  t.equal(last().exit, null)
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
  t.equal(last().exit, null)
  // The second command attaches: the screen is drawn.
  await terminal.waitFor('\x1b[2J')
  await terminal.waitFor('in full screen')
  terminal.type('\r~.')
  await terminal.waitFor('disconnected from work')
  await terminal.waitFor('code=255')
  t.equal(last().exit, null)
  t.equal(terminals.all.filter(({ name }) => name === 'work').length, 1)
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
  t.match(last().request, { env: { COLOR: 'blue' }, cwd: '/' })
  terminal.type('exit\r')
  t.match(await terminal.waitForExit(), { exitCode: 0 })
})

t.test('attach shows the newest or the named session', async (t) => {
  const names = ['one', 'two']
  for (const name of names)
    terminals.start({ session: name, command: `echo screen of ${name}; cat` }, fake.getHome('fig'))
  await waitUntil('both have written', () => terminals.all.slice(-2).every(({ output }) => output.length > 0))
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
  terminals.start({ session: 'build', command: 'cat' }, fake.getHome('fig'))
  const { stdout } = await box('sessions', 'fig')
  t.match(stdout, /^SESSION +PID +SIZE +CLIENTS +STARTED +ACTIVE +COMMAND\n/)
  t.match(stdout, /^build +\d+ +80x24 +0 +0s ago +0s ago +cat$/m)
  t.match(JSON.parse((await box('sessions', 'fig', '--json')).stdout), { type: 'terminal.list' })
  t.match(await box('sessions', 'fig', '--kill', 'build'), {
    code: 0,
    stderr: 'build: terminated (SIGHUP)\n',
  })
  await waitUntil('the session ends', async () => !(await box('sessions', 'fig')).stdout.includes('build'))
  t.match(await box('sessions', 'fig', '--kill', 'none'), { code: 5, stderr: /No such terminal session/ })
})

t.test('exec -it runs a command in a terminal', async (t) => {
  const terminal = run('box exec -it fig -- \'tty -s && read line && echo "got $line"; exit 4\'')
  await waitUntil('the session is started', () => last().request.command?.startsWith('tty') === true)
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
  await fake.stopDuring(() => terminal.waitFor('disconnected. '))
  await terminal.waitFor('\x1b[2J')
  await terminal.waitFor('on screen')

  // The second connection is requested before the message is written.
  const reported = Promise.withResolvers<void>()
  attached.connections = 0
  attached.getFault = (connection) => (connection === 0 ? { kind: 'delay', until: reported.promise } : null)
  attached.closeConnections()
  await terminal.waitFor('disconnected. ')
  terminal.type('typed\r')
  reported.resolve()
  await terminal.waitFor('\x1b[2J')
  await terminal.waitFor('on screen')
  await terminal.waitFor('typed')
  attached.getFault = () => null
  terminal.type('\x04')
  t.match(await terminal.waitForExit(), { exitCode: 5 })
})

t.test('typed bytes and output are exact over connections that fail', async (t) => {
  const faults: (AttachFault | null)[] = [
    { kind: 'cut_sent', afterBytes: 400 },
    { kind: 'error_response', code: 'box_unreachable' },
    { kind: 'cut_received', afterBytes: 700 },
    { kind: 'cut_sent', afterBytes: 700 },
    { kind: 'reset' },
    { kind: 'cut_received', afterBytes: 900 },
  ]
  attached.connections = 0
  attached.getFault = (connection) => faults[connection] ?? null
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
  t.ok(attached.connections > faults.length)
  attached.getFault = () => null
})
