// Output that cannot be written: one line of text, and an exit code that is not a success.
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { createTempDir } from '../support/temp-dir.ts'
import { startCliCoordinator } from './coordinator.ts'
import { runBox, runInShell } from './run-box.ts'

const coordinator = await startCliCoordinator(t, ['fig'], { machines: 'local' })
const run = (script: string) => runInShell(coordinator, script)
const dir = createTempDir(t, 'output')
const FULL = 'box: cannot write to stdout: no space left on device\n'

t.before(async () => {
  await run(`box exec fig -- 'seq 1 20000 >numbers'`)
  await run(`box exec -d fig -- 'seq 1 10'`)
})

t.test('stdout on a full disk', async (t) => {
  const commands: [command: string, code: number][] = [
    [`box exec fig -- 'seq 1 10; exit 3'`, 125],
    [`box exec fig -- 'seq 1 100000; exit 3'`, 125],
    [`box exec --json fig -- 'exit 3'`, 125],
    ['box logs -f fig', 125],
    ['box logs fig', 1],
    [`box cp fig:numbers -`, 1],
    ['box exec -d fig -- true', 125],
    ['box ls', 1],
    ['box ls --json', 1],
    ['box env fig --json', 1],
    ['box ps fig', 1],
    ['box history fig', 1],
    ['box show fig', 1],
    ['box audit', 1],
    ['box completion bash', 1],
    ['box help', 1],
    ['box --version', 1],
  ]
  for (const [command, code] of commands) {
    const result = await run(`${command} >/dev/full`)
    t.equal(result.code, code, command)
    t.notMatch(result.stderr, /^\s+at |node:/m, command)
    const json = command.includes('--json')
    if (json) t.match(result.stderr, /"message":"cannot write to stdout: no space left on device"/, command)
    else t.ok(result.stderr.endsWith(FULL), `${command}: ${result.stderr}`)
  }
})

t.test('stderr on a full disk', async (t) => {
  t.match(await run(`box exec fig -- 'echo warning >&2; exit 3' 2>/dev/full`), { code: 125, stdout: '' })
  t.match(await run('box env fig A=1 2>/dev/full'), { code: 1, stdout: '' })
  t.match(await run('box ls >/dev/full 2>&1'), { code: 1, stdout: '', stderr: '' })
  t.match(
    await run(`box exec fig -- 'echo out; exit 3' 2>/dev/full`),
    { code: 3, stdout: 'out\n' },
    'nothing to write',
  )
})

t.test('a file that reaches the limit of its size', async (t) => {
  const file = join(dir, 'limited')
  for (const [command, code] of [
    [`box exec fig -- 'seq 1 20000'`, 125],
    [`box cp fig:numbers -`, 1],
  ] as const) {
    const result = await run(`ulimit -f 8; ${command} >${file}`)
    t.match(result, { code, stderr: 'box: cannot write to stdout: file too large\n' }, command)
    t.equal(statSync(file).size, 8192, 'what fits has been written')
  }
  t.match(await run(`ulimit -f 1000; box cp fig:numbers - >${file}`), { code: 0, stderr: '' })
  const lines = Array.from({ length: 20_000 }, (_, index) => `${index + 1}\n`)
  t.equal(readFileSync(file, 'utf8'), lines.join(''))
})

t.test('a terminal that is gone, and a directory', async (t) => {
  t.match(await run('exec 5<>/dev/null; box ls >&5'), { code: 0, stderr: '' })
  // The descriptor is open for reading only.
  t.match(await run('box ls >&- 1</dev/null'), {
    code: 1,
    stderr: 'box: cannot write to stdout: bad file descriptor\n',
  })
})

t.test('a reader that closes the pipe', async (t) => {
  t.match(await run(`box exec fig -- 'yes' | head -1; echo \${PIPESTATUS[0]}`), {
    stdout: 'y\n141\n',
    stderr: '',
  })
})

t.test('a command that is too long', async (t) => {
  const long = 'x'.repeat(70_000)
  const message = 'box: The command is longer than 64 KiB. Put it into a file or on stdin.\n'
  for (const options of [[], ['-d'], ['-i']])
    t.same(await runBox(coordinator, ['exec', ...options, 'fig', '--', 'echo', long]), {
      code: 125,
      stdout: '',
      stderr: message,
    })
  t.match(await runBox(coordinator, ['exec', '--json', 'fig', '--', `echo ${long}`]), {
    code: 125,
    stderr: /"code":"invalid_request","message":"The command is longer than 64 KiB\. Put it/,
  })
  t.match(await runBox(coordinator, ['exec', '-e', `A=${long}`, 'fig', 'true']), {
    code: 125,
    stderr: message,
  })
  t.match(await runBox(coordinator, ['env', 'fig', `A=${long}`]), {
    code: 2,
    stderr: /^box: The request is longer than 64 KiB\. Use shorter values \(bad_request\)\n$/,
  })
})
