// box audit sink: the HTTPS endpoint that receives the events of the audit log.
import type { AuditSink, PutAuditSinkResponse } from '../../shared/api/audit-sink.ts'
import type { JsonOption, QuietOption } from '../arguments/options.ts'
import type { Session } from '../connection/session.ts'
import { canAsk, confirm } from '../output/confirm.ts'
import { EXIT } from '../output/exit-codes.ts'
import { print, printJson, printMessage, printStderr, sanitize } from '../output/print.ts'
import { formatTable } from '../output/table.ts'

type Output = JsonOption & QuietOption

export async function showSink({ client }: Session, { json }: Output): Promise<undefined> {
  const response = await client.requestBySession<{ sink: AuditSink | null }>('GET', '/audit/sink')
  if (json) printJson(response)
  else if (response.sink === null)
    printStderr('No endpoint is configured. `box audit sink set URL` sets one.')
  else print(formatSink(response.sink))
}

const formatSink = (sink: AuditSink): string =>
  formatTable([
    ['url', sink.url],
    ['delivered', `up to event ${sink.deliveredThrough}, ${sink.lastDeliveredAt ?? 'never'}`],
    ['pending', String(sink.pending)],
    ...(sink.lastError === null ? [] : [['error', `${sink.lastError} (attempt ${sink.attempt})`]]),
    ...(sink.nextAttemptAt === null ? [] : [['next attempt', sink.nextAttemptAt]]),
  ])

export async function setSink(
  { client }: Session,
  url: string,
  { from, json, quiet }: Output & { from?: 'now' | 'start' },
): Promise<undefined> {
  const request = { url, ...(from !== undefined && { from }) }
  const response = await client.requestBySession<PutAuditSinkResponse>('PUT', '/audit/sink', request)
  if (json) printJson(response)
  else {
    if (!quiet) printStderr(`The events are delivered to ${sanitize(response.sink.url)}.`)
    if (response.secret === null) return
    if (!quiet) printStderr('The secret, which signs the deliveries, is printed only now:')
    print(response.secret)
  }
}

/** Returns the exit code. */
export async function removeSink(
  { client, signal }: Session,
  { yes, json, quiet }: Output & { yes?: boolean },
): Promise<number> {
  if (!yes && canAsk(json ?? false) && !(await confirm('Stop the delivery of audit events?', signal))) {
    printMessage('nothing was changed.')
    return EXIT.failed
  }
  await client.requestBySession('DELETE', '/audit/sink')
  if (json) printJson({ sink: null })
  else if (!quiet) printStderr('No endpoint receives the events any more.')
  return EXIT.ok
}
