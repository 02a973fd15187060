// The progress of box cp: files, bytes of the content, speed and remaining time, only on a terminal.
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import t, { type Test } from 'tap'
import { formatProgress } from '../../cli/copy/progress.ts'
import { runBoxInPty } from './box-in-pty.ts'
import { startCliCoordinator } from './coordinator.ts'

const coordinator = await startCliCoordinator(t, ['fig', 'plum'], { machines: 'local' })
const localDir = t.testdir({})
await mkdir(join(localDir, 'tree'))
for (let index = 0; index < 20; index++)
  await writeFile(join(localDir, 'tree', `file ${index}`), '0123456789')
await writeFile(join(localDir, 'single'), 'x'.repeat(2048))

/** The last line that the terminal has received, and whether that is all. */
async function getLastLine(t: Test, command: string) {
  const pty = runBoxInPty(t, coordinator, `cd '${localDir}' && ${command}`, { cols: 120 })
  t.match(await pty.waitForExit(), { exitCode: 0 })
  // The library draws the line again, from its first column.
  const lines = stripVTControlCharacters(pty.output.replaceAll('\u001b[1G', '\n')).split(/[\r\n]+/)
  return { line: lines.findLast((line) => line.trim() !== '') ?? '', output: pty.output }
}

t.test('shows the bar, files, bytes, speed and remaining time', async (t) => {
  const state = { label: 'tree', files: 500, bytes: 5_242_880, seconds: 2 }
  t.equal(
    formatProgress({ ...state, totals: { files: 2000, bytes: 20_971_520 } }),
    'tree  ██████░░░░░░░░░░░░░░░░░░  25%  500 of 2000 files  5.00 MiB of 20.0 MiB  2.50 MiB/s  ETA 6s',
  )
  t.equal(
    formatProgress({ ...state, files: 0, totals: { files: 1, bytes: 5_242_880 } }),
    `tree  ${'█'.repeat(24)}  100%  5.00 MiB of 5.00 MiB  2.50 MiB/s`,
    'a single file is not counted, and nothing remains',
  )
  t.equal(formatProgress({ ...state, totals: null }), 'tree  500 files  5.00 MiB  2.50 MiB/s')
  t.match(
    formatProgress({ ...state, files: 1, bytes: 0, totals: { files: 2, bytes: 0 } }),
    / {2}50% {2}1 of 2 files {2}0 B of 0 B/,
    'empty files',
  )
})

for (const [name, command] of [
  ['an upload', 'box cp tree fig:'],
  ['a download', 'box cp fig:tree copy'],
  ['a copy between boxes', 'box cp fig:tree plum:'],
] as const)
  t.test(`${name} counts the files and the bytes of their content`, async (t) => {
    const { line } = await getLastLine(t, command)
    t.match(line, /^tree {2}█{24} {2}100% {2}20 of 20 files {2}200 B of 200 B {2}/)
  })

t.test('several sources have one total', async (t) => {
  const upload = await getLastLine(t, 'box cp tree single fig:')
  t.match(upload.line, /^2 sources {2}█{24} {2}100% {2}21 of 21 files {2}2.20 KiB of 2.20 KiB {2}/)
  await mkdir(join(localDir, 'inbox'))
  const download = await getLastLine(t, 'box cp fig:tree fig:single inbox')
  t.match(download.line, /^single {2}█{24} {2}100% {2}21 of 21 files {2}2.20 KiB of 2.20 KiB {2}/)
})

t.test('stdin has no total', async (t) => {
  const { line } = await getLastLine(t, 'box cp - fig:piped < single')
  t.match(line, /^stdin {2}2.00 KiB {2}/)
})

t.test('TERM=dumb and --quiet show nothing', async (t) => {
  t.equal((await getLastLine(t, 'export TERM=dumb; box cp tree fig:dumb')).output, '')
  t.equal((await getLastLine(t, 'box cp -q tree fig:quiet')).output, '')
})
