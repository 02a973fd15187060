// Sets up a command history on a test database, and sends commands and reports as the edge and the box do.

import { applyReports } from '../../../../coordinator/boxes/lifecycle/apply-reports.ts'
import type { Db } from '../../../../coordinator/db/open.ts'
import type { TrackedCommand } from '../../../../coordinator/history/commands/command-tracker.ts'
import { type Commands, createCommands } from '../../../../coordinator/history/commands/commands.ts'
import type { Actor } from '../../../../coordinator/http/actor.ts'
import type { DurableReport } from '../../../../shared/api/reports.ts'
import { noReportHandlers } from '../../../support/report-handlers.ts'
import {
  createOwner,
  createTestBoxService,
  createTestClock,
  type TestClock,
} from '../../../support/workspace.ts'

export type Report<T extends DurableReport['type']> = Extract<DurableReport, { type: T }>
type CommandOptions = { command?: string; cwd?: string; mode?: 'sync' | 'detached'; fromCli?: boolean }
export type SentCommand = { id: string; record: TrackedCommand['record']; started: Report<'command.started'> }

export type Setup = {
  db: Db
  clock: TestClock
  owner: Actor
  boxId: string
  commands: Commands
  logged: unknown[]
  /** Sends a command to the box as the edge does. `started` is the report that the box starts with. */
  request(options?: CommandOptions): Promise<SentCommand>
  /** Applies reports of the box, in order. Another epoch stands for a new spool. */
  report(reports: readonly DurableReport[], epoch?: string, from?: string): Promise<void>
  /** Sends a command and reports its start. */
  run(options?: CommandOptions): Promise<SentCommand>
}

export async function setUp(
  db: Db,
  retention: Partial<Parameters<typeof createCommands>[0]['retention']> = {},
): Promise<Setup> {
  const clock = createTestClock()
  const owner = await createOwner(db, clock)
  const boxes = createTestBoxService(db, { clock })
  const { id: boxId } = await boxes.create(owner, {})
  const logged: unknown[] = []
  const commands = createCommands({
    db,
    clock,
    boxes,
    log: {
      info: () => undefined,
      warn: (line: unknown) => void logged.push(line),
      error: (line: unknown) => void logged.push(line),
    },
    retention: { days: 30, records: 1000, outputBytes: 2 ** 30, ...retention },
  })
  let seq = 0

  async function request({
    command = 'true',
    cwd,
    mode = 'sync',
    fromCli = false,
  }: CommandOptions = {}): Promise<SentCommand> {
    clock.advance(1)
    const respondsAt = mode === 'detached' ? ('start' as const) : ('exit' as const)
    const commandRequest = { boxId, actor: owner, mode, respondsAt, fromCli, command, cwd }
    const record = await commands.tracker.track(commandRequest, async ({ record }) => record)
    const started = {
      type: 'command.started',
      commandId: record.commandId,
      claimsToken: record.claimsToken,
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
    await applyReports(db, { ...noReportHandlers, commands: commands.reportHandler }, [
      { boxId: from, epoch, reports: numbered },
    ])
  }

  async function run(options?: CommandOptions): Promise<SentCommand> {
    const sent = await request(options)
    await report([sent.started])
    return sent
  }

  return { db, clock, owner, boxId, commands, logged, request, report, run }
}

export const finished = (
  commandId: string,
  fields: Partial<Report<'command.finished'>> = {},
): Report<'command.finished'> => ({
  type: 'command.finished',
  commandId,
  status: 'exited',
  exitCode: 0,
  signal: null,
  finishedAt: 1_900_000_000_000,
  stdoutBytes: 0,
  stderrBytes: 0,
  ...fields,
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
