// box exec: output, exit codes, arguments, options and time limits.
import t from 'tap'
import { runBoxInPty } from './box-in-pty.ts'
import { startCliCoordinator } from './coordinator.ts'
import { runBox } from './run-box.ts'

const coordinator = await startCliCoordinator(t, ['fig'], { machines: 'local' })
const exec = (...args: string[]) => runBox(coordinator, ['exec', ...args])

t.test('prints the output of the command and exits with its exit code', async (t) => {
  const command = 'echo grün; echo oops >&2; exit 7'
  t.same(await exec('fig', '--', command), { code: 7, stdout: 'grün\n', stderr: 'oops\n' })
})

t.test('a command killed by signal n exits with 128 + n', async (t) => {
  t.match(await exec('fig', '--', 'kill -TERM $$'), { code: 143 })
})

t.test('quotes each of several arguments, and passes a single argument to the shell unchanged', async (t) => {
  t.match(await exec('fig', '--', 'printf', '<%s>', "it's $HOME", '-n'), { stdout: "<it's $HOME><-n>" })
  t.match(await exec('fig', '--', 'printf "<%s>" a b | wc -c'), { stdout: '6\n' })
})

t.test('--cwd and --env apply to the command', async (t) => {
  const script = 'pwd; echo "$A[$EMPTY]"'
  for (const [cwd, env] of [
    ['--cwd', '--env'],
    ['-w', '-e'],
    ['--workdir', '--env'],
  ] as const) {
    const options = [cwd, '/', env, 'A=b=c', env, 'EMPTY=']
    t.match(await exec('fig', ...options, '--', script), { code: 0, stdout: '/\nb=c[]\n' })
  }
  const inherited = await runBox(
    coordinator,
    ['exec', 'fig', '--env', 'INHERITED', '--', 'echo $INHERITED'],
    {
      env: { INHERITED: 'value' },
    },
  )
  t.match(inherited, { stdout: 'value\n' })
})

t.test('a timeout exits with 124 and a message; a command that exits with 124 has no message', async (t) => {
  t.match(await exec('fig', '--timeout', '1', '--', 'echo a; sleep 60'), {
    code: 124,
    stdout: 'a\n',
    stderr: 'box: the command timed out after 1 s. Use a longer --timeout (up to 600), or none.\n',
  })
  t.same(await exec('fig', '--', 'exit 124'), { code: 124, stdout: '', stderr: '' })
})

t.test('--json prints the result and exits with the code of the command', async (t) => {
  const { code, stdout } = await exec('fig', '--json', '--', 'echo a; exit 3')
  t.equal(code, 3)
  t.match(JSON.parse(stdout), { type: 'exec.result', exitCode: 3, stdout: 'a\n' })
  const timedOut = await exec('fig', '--json', '--timeout', '1', '--', 'sleep 60')
  t.match(timedOut, { code: 124, stderr: /timed out after 1 s\. Use --timeout/ })
})

t.test('Ctrl-C kills the command of --json too', async (t) => {
  const result = await runBox(coordinator, ['exec', 'fig', '--json', '--', 'sleep 60'], {
    onSpawn: (child) => {
      coordinator.failNext('POST /v1/box/fig/exec', () => child.kill('SIGINT'))
    },
  })
  t.match(result, { code: 130, stderr: /^box: interrupted; the command on fig was killed\./ })
})

t.test('exits with 125 when box exec itself fails', async (t) => {
  t.match(await exec('nonexistent', '--', 'true'), {
    code: 125,
    stderr: /No such box: 'nonexistent'.*box ls/,
  })
  t.match(await exec('fig'), { code: 125, stderr: /^box: missing required argument/ })
  const timeout = 'box: --timeout must be a number between 1 and 600.\n'
  for (const value of ['soon', '0', '601'])
    t.same(await exec('fig', '--timeout', value, '--', 'true'), { code: 125, stdout: '', stderr: timeout })
  t.match(await runBox('http://127.0.0.1:1', ['exec', 'fig', '--', 'true']), {
    code: 125,
    stderr: /Cannot reach/,
  })
})

t.test('everything after the name is the command', async (t) => {
  const print = ['printf', '<%s>']
  t.match(await exec('fig', ...print, '-n', '--json', '-x'), { code: 0, stdout: '<-n><--json><-x>' })
  t.match(await exec('fig', ...print, '--', '-l'), { stdout: '<--><-l>' })
  t.match(await exec('-w', '/', 'fig', 'pwd', '-P'), { stdout: '/\n' })
  t.match(await exec('fig', '--', ...print, '--', '-l'), { stdout: '<--><-l>' })
  t.match(await exec('fig', ...print, '--help', '-h', '--version'), { stdout: '<--help><-h><--version>' })
})

t.test('options may follow the name when -- separates them from the command', async (t) => {
  t.match(await exec('-e', 'A=1', 'fig', '-w', '/', '-e', 'B=2', '--', 'pwd; echo $A$B'), {
    stdout: '/\n12\n',
  })
  t.match(await exec('fig', '-w/', '--env=A=b', '--', 'sh', '-c', 'pwd; echo $A'), { stdout: '/\nb\n' })
})

t.test('a command that starts with a hyphen needs --', async (t) => {
  t.match(await exec('fig', '--', '-x'), { code: 127, stderr: /-x.*not found/ })
  const error =
    /^box: Unknown option '-x' of box exec\. Write one of:\n {2}\S*box exec \[options\] NAME COMMAND\n {2}\S*box exec NAME \[options\] -- COMMAND\n$/
  t.match(await exec('fig', '-x'), { code: 125, stdout: '', stderr: error })
  t.match(await exec('fig', '-w', '/', '-x', '--', 'pwd'), { code: 125, stdout: '', stderr: error })
  t.match(await exec('fig', '-'), { code: 127, stderr: /-: .*not found/ })
})

t.test('options after the name without -- run nothing, and both ways to write them are named', async (t) => {
  coordinator.requests.length = 0
  t.match(await exec('fig', '-it', 'bash', '-l'), {
    code: 125,
    stdout: '',
    stderr:
      /^box: Options after the name need `--` before the command\. Write one of:\n {2}\S*box exec -it fig bash -l\n {2}\S*box exec fig -it -- bash -l\n$/,
  })
  t.match(await exec('fig', '-w', 'a b', 'ls', '--', '-l'), {
    code: 125,
    stderr: /box exec -w 'a b' fig ls -- -l\n {2}\S*box exec fig -w 'a b' -- ls -- -l\n/,
  })
  for (const words of [['-it'], ['--'], ['-w', '/', '--']])
    t.match(await exec('fig', ...words), { code: 125, stderr: /The command is missing/ })
  t.match(await exec('fig', '-w'), { code: 125, stderr: /argument missing/ })
  t.same(coordinator.requests, [])
  t.match(await exec('fig', '--help'), { code: 0, stdout: /^Usage: box exec/ })
})

t.test('-it is accepted before the name, and after the name with --', async (t) => {
  const terminal = runBoxInPty(t, coordinator, 'box exec -it fig echo one; box exec fig -it -- echo two')
  await terminal.waitFor('one')
  await terminal.waitFor('two')
  t.match(await terminal.waitForExit(), { exitCode: 0 })
})

t.test('on a terminal, a note names -it for a shell that reads nothing from the terminal', async (t) => {
  const note = 'the command does not read from this terminal. For a terminal: box exec -it fig'
  for (const program of ['bash', '/bin/cat']) {
    const terminal = runBoxInPty(t, coordinator, `box exec fig ${program}; echo code=$?`, { cols: 200 })
    await terminal.waitFor(`${note} ${program}`)
    await terminal.waitFor('code=0')
  }
  const others = [
    'box exec fig true',
    'box exec fig -- cat /dev/null',
    'box exec -n fig cat',
    'true | box exec fig cat',
  ]
  const terminal = runBoxInPty(t, coordinator, `${others.join('; ')}; echo code=$?`)
  await terminal.waitFor('code=0')
  t.notMatch(terminal.output, 'note:')
  t.same(await runBox(coordinator, ['exec', 'fig', 'bash']), { code: 0, stdout: '', stderr: '' })
})

t.test('box names that are words of the command line', async (t) => {
  for (const name of ['help', 'exec']) {
    await coordinator.addBox(name)
    t.match(await exec(name, 'echo', name), { code: 0, stdout: `${name}\n` })
    t.match(await runBox(coordinator, ['show', name]), { code: 0, stdout: /^name/ })
  }
})
