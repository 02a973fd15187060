// A process that exits writes why, as its last line of JSON.
import { spawnSync } from 'node:child_process'
import t from 'tap'

const FIXTURE = new URL('../fixtures/report-exit.ts', import.meta.url).pathname

t.test('every exit has a line with its reason', async (t) => {
  for (const [mode, expected] of [
    ['throw', { exitCode: 1, reason: 'unhandled rejection: thrown' }],
    ['throw later', { exitCode: 1, reason: 'uncaught exception: thrown' }],
    ['reject', { exitCode: 1, reason: 'unhandled rejection: rejected' }],
    ['exit', { exitCode: 7, reason: 'asked to' }],
    ['empty', { exitCode: 0, reason: 'nothing was left to do' }],
    ['exit code', { exitCode: 3, reason: 'nothing was left to do' }],
  ] as const) {
    const { status, stderr } = spawnSync(process.execPath, [FIXTURE, mode], { encoding: 'utf8' })
    const lines = stderr.split('\n').filter((line) => line.startsWith('{"'))
    t.equal(status, expected.exitCode, mode)
    t.same(
      lines.map((line) => JSON.parse(line)),
      [expected],
      mode,
    )
  }
})
