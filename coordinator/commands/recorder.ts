// A command on its way to a box: the id and the receipt that its reports come back with.
import type { AgentExecRequest } from '../../shared/api/exec.ts'
import type { Clock } from '../../shared/clock.ts'
import { ApiError } from '../../shared/errors.ts'
import { newId } from '../../shared/ids.ts'
import { actorFields } from '../audit/service.ts'
import type { Db } from '../db/open.ts'
import type { Actor } from '../http/actor.ts'
import type { ExpectedRecords } from './expected.ts'
import { commandHash, type Receipts } from './receipts.ts'
import { retentionLookup } from './store.ts'

export type RecordedCommand = {
  boxId: string
  actor: Actor
  mode: 'sync' | 'detached'
  /** The box command sent it (spec §9: nobody else names a version). */
  fromCli: boolean
  command: string
  cwd: string | undefined
}

export type Recording = {
  /** Goes to the box with the request; its commandId is a detached command's processId too. */
  record: NonNullable<AgentExecRequest['record']>
  /**
   * Takes the box's answer, which names the record when there will be one (an older agent makes none). From then on
   * who reads the history finds it. Throws exec_failed when it names another.
   */
  accept(answer: { commandId?: string | undefined }): void
}

export type CommandRecorder = {
  /** Runs `ask`, which asks the box and hands its answer to `accept`; resolves with what it returns. */
  record<T>(command: RecordedCommand, ask: (recording: Recording) => Promise<T>): Promise<T>
}

export type RecorderOptions = { db: Db; clock: Clock; receipts: Receipts; expected: ExpectedRecords }

export function createCommandRecorder({ db, clock, receipts, expected }: RecorderOptions): CommandRecorder {
  const retentionOf = retentionLookup(db)

  async function newRecord({ boxId, actor, mode, fromCli, command, cwd }: RecordedCommand) {
    const [workspace] = await retentionOf(actor.workspaceId)
    const commandId = newId('process')
    const keepOutput = workspace?.zero_data_retention === 0
    const receipt = await receipts.seal({
      boxId,
      commandId,
      mode,
      source: fromCli ? 'cli' : 'api',
      actor: actorFields(actor),
      requestedAt: clock.now(),
      keepOutput,
      // Of a text that is not to be kept there shall not be a hash either: short ones could be guessed from it.
      hash: keepOutput ? commandHash(command, cwd || '~') : '',
    })
    return { commandId, receipt, keepOutput }
  }

  return {
    async record(command, ask) {
      const record = await newRecord(command)
      const expectation = expected.expect(command.boxId, record.commandId)
      const accept: Recording['accept'] = ({ commandId }) => {
        if (commandId === record.commandId) expectation.answered()
        else if (commandId === undefined) expectation.dropped()
        else throw new ApiError('exec_failed', 'The box answered about another command.')
      }
      try {
        return await ask({ record, accept })
      } catch (error) {
        expectation.dropped()
        throw error
      }
    },
  }
}
