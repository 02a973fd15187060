// A command history on a database, with a box whose agent is the test.
import { type Commands, createCommands } from '../../../coordinator/commands/commands.ts'
import type { Recording } from '../../../coordinator/commands/recorder.ts'
import type { Db } from '../../../coordinator/db/open.ts'
import type { Actor } from '../../../coordinator/http/actor.ts'
import { applyReports } from '../../../coordinator/lifecycle/agents.ts'
import type { DurableReport } from '../../../shared/api/reports.ts'
import { boxesOf, ownerOf, type TestClock, testClock } from '../../support/workspace.ts'

export type Report<T extends DurableReport['type']> = Extract<DurableReport, { type: T }>
type Asked = { command?: string; cwd?: string; mode?: 'sync' | 'detached'; fromCli?: boolean }
export type Running = { id: string; record: Recording['record']; started: Report<'command.started'> }

export type Setting = {
  db: Db
  clock: TestClock
  owner: Actor
  boxId: string
  commands: Commands
  refusals: unknown[]
  /** A command that the edge sends to the box, and the report that the box begins with. */
  ask(asked?: Asked): Promise<Running>
  /** Reports of the box, in order; a new spool when the epoch is another. */
  report(reports: readonly DurableReport[], epoch?: string, from?: string): Promise<void>
  /** Asked and reported as running. */
  run(asked?: Asked): Promise<Running>
}

export async function setUp(
  db: Db,
  retention: Partial<Parameters<typeof createCommands>[0]['retention']> = {},
): Promise<Setting> {
  const clock = testClock()
  const owner = await ownerOf(db, clock)
  const boxes = boxesOf(db, { clock })
  const { id: boxId } = await boxes.create(owner, {})
  const refusals: unknown[] = []
  const commands = createCommands({
    db,
    clock,
    boxes,
    log: {
      warn: (line: unknown) => void refusals.push(line),
      error: (line: unknown) => void refusals.push(line),
    },
    retention: { days: 30, records: 1000, outputBytes: 2 ** 30, ...retention },
  })
  let seq = 0

  async function ask({
    command = 'true',
    cwd,
    mode = 'sync',
    fromCli = false,
  }: Asked = {}): Promise<Running> {
    clock.advance(1)
    const what = { boxId, actor: owner, mode, fromCli, command, cwd }
    const record = await commands.recorder.record(what, async ({ record }) => record)
    const started = {
      type: 'command.started',
      commandId: record.commandId,
      receipt: record.receipt,
      command,
      commandTruncated: false,
      cwd: cwd ?? '~',
      pid: 7,
      startedAt: clock.now(),
    } as const
    return { id: record.commandId, record, started }
  }

  async function report(reports: readonly DurableReport[], epoch = 'e1', from = boxId): Promise<void> {
    const numbered = reports.map((report) => ({ seq: ++seq, report }))
    await applyReports(db, commands.reported, [{ boxId: from, epoch, reports: numbered }])
  }

  async function run(asked?: Asked): Promise<Running> {
    const running = await ask(asked)
    await report([running.started])
    return running
  }

  return { db, clock, owner, boxId, commands, refusals, ask, report, run }
}

export const finished = (
  commandId: string,
  more: Partial<Report<'command.finished'>> = {},
): Report<'command.finished'> => ({
  type: 'command.finished',
  commandId,
  status: 'exited',
  exitCode: 0,
  signal: null,
  finishedAt: 1_900_000_000_000,
  stdoutBytes: 0,
  stderrBytes: 0,
  ...more,
})

export const output = (
  commandId: string,
  offset: number,
  bytes: Buffer | string,
  stream: 'stdout' | 'stderr' = 'stdout',
): Report<'command.output'> => ({
  type: 'command.output',
  commandId,
  stream,
  offset,
  data: Buffer.from(bytes).toString('base64'),
})
