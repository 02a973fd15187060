// box audit verify: reads the hash chain of the audit log page by page, and verifies it on this machine.

import type { AuditChainPage } from '../../shared/api/audit.ts'
import { START_HASH } from '../../shared/audit-chain.ts'
import { formatCount } from '../../shared/format-count.ts'
import {
  type ChainPosition,
  type ChainVerification,
  startVerification,
  verifyPage,
} from '../../shared/verify-audit-chain.ts'
import type { JsonOption, QuietOption } from '../arguments/options.ts'
import type { Session } from '../connection/session.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { print, printJson, sanitize } from '../output/print.ts'

export type VerifyOptions = JsonOption & QuietOption & { head?: ChainPosition }

/** `ID:HASH`, as box audit verify prints it. @throws CliError */
export function parseHead(text: string): ChainPosition {
  const [, id, hash] = /^(\d{1,15}):([0-9a-f]{64})$/.exec(text.trim()) ?? []
  if (id !== undefined && hash !== undefined) return { id: Number(id), hash }
  throw new CliError(EXIT.usage, '--head must be ID:HASH, as `box audit verify` prints it.')
}

/** Returns the exit code: 1 when the chain is broken. */
export async function verifyAudit({ client, signal }: Session, options: VerifyOptions): Promise<number> {
  let state = startVerification(options.head ?? null)
  let after = 0
  while (!state.isComplete) {
    signal.throwIfAborted()
    const page = await client.request<AuditChainPage>('GET', `/audit/chain?after=${after}`)
    state = verifyPage(state, page)
    after = page.next ?? after
  }
  if (options.json) printJson(toJson(state))
  else if (!options.quiet || state.problem !== null) for (const line of formatResult(state)) print(line)
  return state.problem === null ? EXIT.ok : EXIT.failed
}

function toJson({ problem, events, erasedDetails, start, head, isNotedPruned }: ChainVerification) {
  const isIntact = problem === null
  return { intact: isIntact, problem, events, erasedDetails, start, head, isNotedHeadPruned: isNotedPruned }
}

const formatHead = ({ id, hash }: ChainPosition): string => `${id}:${sanitize(hash)}`

function formatResult({
  problem,
  events,
  erasedDetails,
  start,
  head,
  noted,
  isNotedPruned,
}: ChainVerification) {
  const lines = [`${formatCount(events, 'event is intact', 'events are intact')}.`]
  if (problem !== null) {
    lines.push(`The chain is broken at event ${problem.id}: ${sanitize(problem.message)}`)
    return lines
  }
  if (start !== null && start.hash !== START_HASH)
    lines.push(`The events up to ${start.id} were deleted after their retention.`)
  if (erasedDetails > 0)
    lines.push(
      `The details of ${formatCount(erasedDetails, 'event')} are erased (zero data retention), and cannot be verified.`,
    )
  if (noted !== null)
    lines.push(
      isNotedPruned
        ? `Event ${noted.id} of --head was deleted after its retention, and cannot be compared.`
        : `The event of --head is part of the chain.`,
    )
  if (head !== null && head.id > 0)
    lines.push(`Head: ${formatHead(head)}`, 'Keep the head elsewhere, and pass it to --head next time.')
  return lines
}
