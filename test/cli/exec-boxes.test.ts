// box exec --all and --label: one command on several boxes, with lines that start with the box.
import t from 'tap'
import { createLinePrefixer, formatPrefix } from '../../cli/output/line-prefixer.ts'
import { startCliCoordinator } from './coordinator.ts'
import { createRandom } from './random.ts'
import { type BoxOptions, runBox } from './run-box.ts'

const coordinator = await startCliCoordinator(t, ['fig', 'kumquat', 'plum'], { machines: 'local' })
const box = (args: string[], options?: BoxOptions) => runBox(coordinator, args, options)
const sortLines = (text: string) => text.split('\n').slice(0, -1).sort()

t.before(async () => {
  await box(['label', 'fig', 'kumquat', 'team=web', '-q'])
  await box(['label', 'plum', 'team=ops', '-q'])
})

t.test('runs on each box, and starts each line with the name of the box', async (t) => {
  const result = await box(['exec', '--all', '--', 'echo one; echo two >&2; printf three'])
  t.equal(result.code, 0)
  t.same(sortLines(result.stdout), [
    'fig     | one',
    'fig     | three',
    'kumquat | one',
    'kumquat | three',
    'plum    | one',
    'plum    | three',
  ])
  t.same(sortLines(result.stderr), ['fig     | two', 'kumquat | two', 'plum    | two'])
})

t.test('--label selects the boxes, and several words are quoted', async (t) => {
  const result = await box([
    'exec',
    '--label',
    'team=web',
    '-e',
    'A=1',
    '--',
    'sh',
    '-c',
    'echo "$A  $0"',
    'a  b',
  ])
  t.match(result, { code: 0, stderr: '' })
  t.same(sortLines(result.stdout), ['fig     | 1  a  b', 'kumquat | 1  a  b'])
  t.same(
    sortLines((await box(['exec', '--label', 'team', '--label', 'team=ops', 'hostname'])).stdout).length,
    1,
  )
})

t.test('the exit code is the highest one, and stderr names the boxes that failed', async (t) => {
  await box(['env', 'fig', 'CODE=3'])
  await box(['env', 'plum', 'CODE=7'])
  const result = await box(['exec', '--all', '--', 'exit $((CODE + 0))'])
  t.equal(result.code, 7)
  t.same(sortLines(result.stderr), ['box: fig: exit code 3', 'box: plum: exit code 7'])
  const timedOut = await box(['exec', '--all', '--timeout', '1', '--', '[ -z "$CODE" ] && sleep 1000'])
  t.match(timedOut, { code: 124, stderr: /^box: kumquat: the command timed out after 1 s/m })
  t.match(await box(['exec', '--all', '-w', '/nowhere', '--', 'true']), {
    code: 125,
    stderr: /^box: fig: No such directory on fig: '\/nowhere'.*\nbox: (kumquat|plum): /m,
  })
})

t.test('--json prints one object for each box', async (t) => {
  const result = await box([
    'exec',
    '--label',
    'team',
    '--json',
    '--',
    'echo $((CODE + 0)); exit $((CODE + 0))',
  ])
  t.match(result, { code: 7, stderr: '' })
  t.same(
    sortLines(result.stdout).map((line) => {
      const { box, exitCode, stdout, type } = JSON.parse(line)
      return [box, exitCode, stdout, type]
    }),
    [
      ['fig', 3, '3\n', 'exec.result'],
      ['kumquat', 0, '0\n', 'exec.result'],
      ['plum', 7, '7\n', 'exec.result'],
    ],
  )
  const failed = await box(['exec', '--label', 'team=ops', '--json', '-w', '/nowhere', '--', 'true'])
  t.match(failed, {
    code: 125,
    stdout: /^\{"box":"plum","error":\{"code":"not_found","message":"No such dir/,
  })
})

t.test('stdin is not forwarded', async (t) => {
  t.match(await box(['exec', '--label', 'team=ops', '--', 'cat; echo end'], { stdin: 'secret' }), {
    code: 0,
    stdout: 'plum | end\n',
  })
})

const isReady = (text: string) => text.match(/ready/g)?.length === 3

t.test('the commands run at the same time, and Ctrl-C terminates all', async (t) => {
  const result = await box(
    ['exec', '--all', '--', 'trap "echo stopped; exit 1" TERM; echo ready; sleep 1000 & wait'],
    {
      onSpawn(child) {
        let text = ''
        child.stdout?.on('data', (chunk) => {
          const wasReady = isReady(text)
          text += chunk
          if (!wasReady && isReady(text)) child.kill('SIGINT')
        })
      },
    },
  )
  t.match(result, { code: 130, stderr: /^box: interrupted; terminating the commands\. / })
  t.equal(result.stderr.match(/interrupted/g)?.length, 1)
  t.equal(result.stdout.match(/stopped/g)?.length, 3)
})

t.test('boxes that are not running are left out', async (t) => {
  await box(['stop', 'fig'])
  t.match(await box(['exec', '--label', 'team=web', '--', 'echo up']), {
    code: 0,
    stdout: 'kumquat | up\n',
    stderr: 'box: not running, and left out: fig.\n',
  })
  await box(['stop', 'kumquat'])
  t.match(await box(['exec', '--label', 'team=web', '--', 'echo up']), {
    code: 125,
    stdout: '',
    stderr: /None of the boxes is running\. Start them with `box start`: fig, kumquat\./,
  })
  await box(['start', '--label', 'team=web'])
})

t.test('what does not fit together is refused before a request', async (t) => {
  coordinator.requests.length = 0
  const refused: [string[], RegExp][] = [
    [['--all'], /The command is missing/],
    [['--all', '-i', '--', 'ls'], /-i cannot be combined with --all/],
    [['--label', 'a', '-t', '--', 'ls'], /-t cannot be combined with --label/],
    [['--all', '-d', '--', 'ls'], /-d cannot be combined with --all/],
    [['--all', 'fig', '--', 'ls'], /--all cannot be combined with the name of a box/],
    [['fig', '--all', '--', 'ls'], /--all cannot be combined with the name of a box/],
    [['--label', 'A', '--', 'ls'], /--label must be KEY or KEY=VALUE/],
    [[], /missing required argument 'name'/],
    [['fig'], /missing required argument 'command'/],
  ]
  for (const [args, stderr] of refused)
    t.match(await box(['exec', ...args]), { code: 125, stdout: '', stderr }, args.join(' '))
  t.same(coordinator.requests, [])
  t.match(await box(['exec', '--label', 'team=none', '--', 'ls']), { code: 125, stderr: /No box matches/ })
})

t.test('lines are prefixed whole, however the bytes arrive', async (t) => {
  const text = 'a\n\nlonger line\r\nü last'
  const expected = 'fig | a\nfig | \nfig | longer line\r\nfig | ü last\n'
  const random = createRandom(3)
  for (let round = 0; round < 200; round += 1) {
    const prefixer = createLinePrefixer(formatPrefix('fig', ['fig']))
    const bytes = Buffer.from(text)
    const parts: Buffer[] = []
    for (let start = 0; start < bytes.length; ) {
      const end = start + 1 + random.below(6)
      const lines = prefixer.add(bytes.subarray(start, end))
      if (lines.length > 0) t.equal(lines.at(-1), 10, 'only whole lines')
      parts.push(lines)
      start = end
    }
    parts.push(prefixer.end(), prefixer.end())
    t.equal(Buffer.concat(parts).toString(), expected)
  }
  const prefixer = createLinePrefixer('p')
  const long = Buffer.concat([prefixer.add(Buffer.alloc(3_000_000, 'x')), prefixer.add(Buffer.from('\n'))])
  t.same(
    long
      .toString()
      .split('\n')
      .map(({ length }) => length),
    [1024 * 1024 + 1, 1024 * 1024 + 1, 3_000_000 - 2 * 1024 * 1024 + 1, 0],
  )
})
