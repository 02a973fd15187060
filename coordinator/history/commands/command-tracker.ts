// Gives a command its id and claims token before it is sent to a box, and tracks its record until it is committed.
import type { Logger } from 'pino'
import type { AgentExecRequest } from '../../../shared/api/exec.ts'
import type { Clock } from '../../../shared/clock.ts'
import { ApiError } from '../../../shared/errors.ts'
import { newId } from '../../../shared/ids.ts'
import { actorFields } from '../../audit/service.ts'
import type { Db } from '../../db/open.ts'
import { prepareRetentionQuery } from '../../db/zero-data-retention.ts'
import { type Actor, formatActor } from '../../http/actor.ts'
import { type CommandClaimsSigner, hashCommand } from './command-claims.ts'
import type { PendingRecord, PendingRecords } from './pending-records.ts'
import { findCommandById } from './store.ts'

export type CommandRequest = {
  /** The id of a command that may have been started by an earlier request. Default: a new one. */
  id?: string
  boxId: string
  actor: Actor
  mode: 'sync' | 'detached'
  /** The state of the command when the response is sent. */
  respondsAt: 'start' | 'exit'
  /** The request has a CLI version header, which only the `box` CLI sends (spec §9). */
  fromCli: boolean
  command: string
  cwd: string | undefined
}

export type TrackedCommand = {
  /** Sent to the box with the request. commandId is also the processId of a detached command. */
  record: NonNullable<AgentExecRequest['record']>
  /**
   * Takes the box's response. With a commandId, the box will report on the command, and readers of the history wait for
   * its record. Throws exec_failed when it is the id of another command.
   */
  acceptResponse(response: { commandId?: string | undefined }): void
}

export type CommandTracker = {
  /** Calls `send`, which sends the command to the box and passes the response to `acceptResponse`; returns its result. */
  track<T>(request: CommandRequest, send: (tracked: TrackedCommand) => Promise<T>): Promise<T>
}

/** Of a command whose record is committed: readers of the history do not wait for it. */
const RECORDED: PendingRecord = { confirm: () => undefined, cancel: () => undefined }

export type CommandTrackerOptions = {
  db: Db
  clock: Clock
  log: Pick<Logger, 'info'>
  claims: CommandClaimsSigner
  pending: PendingRecords
}

export function createCommandTracker({
  db,
  clock,
  log,
  claims,
  pending,
}: CommandTrackerOptions): CommandTracker {
  const queryRetention = prepareRetentionQuery(db)

  async function createRecord({ id, boxId, actor, mode, fromCli, command, cwd }: CommandRequest) {
    const [workspace] = await queryRetention(actor.workspaceId)
    const commandId = id ?? newId('process')
    const keepOutput = workspace?.zero_data_retention === 0
    const claimsToken = await claims.sign({
      boxId,
      commandId,
      mode,
      source: fromCli ? 'cli' : 'api',
      actor: actorFields(actor),
      requestedAt: clock.now(),
      keepOutput,
      // No hash under zero data retention: a short command could be guessed from it.
      hash: keepOutput ? hashCommand(command, cwd || '~') : '',
    })
    return { commandId, claimsToken, keepOutput }
  }

  return {
    async track(request, send) {
      const record = await createRecord(request)
      const { boxId, mode, actor } = request
      log.info({ boxId, commandId: record.commandId, mode, actor: formatActor(actor) }, 'command requested')
      const isRecorded = request.id !== undefined && (await findCommandById(db, request.id)) !== undefined
      const pendingRecord = isRecorded
        ? RECORDED
        : pending.add(request.boxId, record.commandId, request.respondsAt)
      const acceptResponse: TrackedCommand['acceptResponse'] = ({ commandId }) => {
        if (commandId === record.commandId) pendingRecord.confirm()
        else if (commandId === undefined) pendingRecord.cancel()
        else
          throw new ApiError(
            'exec_failed',
            'The agent responded for a different command. If this persists, suspend and wake the box to restart its agent.',
          )
      }
      try {
        return await send({ record, acceptResponse })
      } catch (error) {
        pendingRecord.cancel()
        throw error
      }
    },
  }
}
