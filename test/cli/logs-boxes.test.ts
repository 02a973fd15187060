// box logs of several boxes: by names, --all and --label.
import t from 'tap'
import { waitUntil } from '../support/wait-until.ts'
import { startCliCoordinator } from './coordinator.ts'
import { type BoxOptions, runBox } from './run-box.ts'

const coordinator = await startCliCoordinator(t, ['fig', 'kumquat', 'plum'], { machines: 'local' })
const box = (args: string[], options?: BoxOptions) => runBox(coordinator, args, options)
const sortLines = (text: string) => text.split('\n').slice(0, -1).sort()

/** Starts a process and waits until its output has been written. */
async function start(name: string, script: string, output: string): Promise<string> {
  const id = (await box(['exec', '-d', name, '--', script])).stdout.trim()
  await waitUntil(`the output of ${name}`, async () =>
    (await box(['logs', name, id])).stdout.includes(output),
  )
  return id
}

t.test('prints the newest process of each box, one box after the other', async (t) => {
  await start('fig', 'echo one; printf two', 'two')
  await start('kumquat', 'echo three; sleep 1000', 'three')
  const expected = 'kumquat | three\nfig     | one\nfig     | two\n'
  t.same(await box(['logs', 'kumquat', 'fig']), { code: 0, stdout: expected, stderr: '' })
  t.same((await box(['logs', 'kumquat', 'fig', 'fig'])).stdout, expected, 'each box once')
  t.same(await box(['logs', '-n', '1', 'fig', 'kumquat']), {
    code: 0,
    stdout: 'fig     | two\nkumquat | three\n',
    stderr: '',
  })
  t.match(await box(['logs', '-t', 'fig', 'kumquat']), {
    stdout: /^fig {5}\| \d{4}-\S+Z one\nfig {5}\| \d{4}-\S+Z two\n/,
  })
  const { stdout } = await box(['logs', '--json', 'fig', 'kumquat'])
  t.match(
    stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line)),
    [
      { box: 'fig', event: 'stdout' },
      { box: 'kumquat', event: 'stdout' },
    ],
  )
})

t.test('a box without a process is a failure only when it is named', async (t) => {
  t.match(await box(['logs', 'fig', 'plum']), {
    code: 5,
    stdout: /^fig/,
    stderr: /^box: No processes on plum\./,
  })
  t.match(await box(['logs', 'fig', 'none']), { code: 5, stdout: /^fig/, stderr: /No such box: 'none'/ })
  t.match(await box(['logs', '--all']), { code: 0, stderr: /^box: No processes on plum\./ })
  await box(['label', 'fig', 'team=web'])
  t.match(await box(['logs', '--label', 'team=web']), {
    code: 0,
    stdout: 'fig | one\nfig | two\n',
    stderr: '',
  })
  t.match(await box(['logs', '--label', 'team=ops']), { code: 5, stderr: /No box matches/ })
})

t.test('-f follows all boxes at the same time, and exits with the highest code', async (t) => {
  const script = (code: number) =>
    `echo ready; until [ -e ~/go ]; do sleep 0.05; done; echo gone; exit ${code}`
  await start('fig', script(3), 'ready')
  await start('plum', script(2), 'ready')
  let text = ''
  let isReleased = false
  const result = await box(['logs', '-f', 'fig', 'plum'], {
    onSpawn: (child) =>
      child.stdout?.on('data', (chunk) => {
        text += chunk
        if (isReleased || text.match(/ready/g)?.length !== 2) return
        isReleased = true
        for (const name of ['plum', 'fig']) void box(['exec', name, 'touch ~/go'])
      }),
  })
  t.match(result, { code: 3, stderr: '' })
  t.same(sortLines(result.stdout), ['fig  | gone', 'fig  | ready', 'plum | gone', 'plum | ready'])
})

t.test('what does not fit together is refused', async (t) => {
  t.match(await box(['logs', '--all', 'fig']), { code: 2, stderr: /--all cannot be combined with names/ })
  t.match(await box(['logs']), { code: 2, stderr: /missing required argument 'name'/ })
  t.match(await box(['logs', 'fig', 'abc']), { code: 5, stderr: /No such process on fig: 'abc'/ })
})
