// The action of box move and box resize: requests the change, waits until it is complete, and prints the box.
import type { Box, BoxDetail } from '../../shared/api/boxes.ts'
import type { OutputOptions } from '../arguments/options.ts'
import { boxCommand } from '../command-name.ts'
import { addHints, getWaitHint } from '../connection/refusals.ts'
import type { Session } from '../connection/session.ts'
import { printIfInterrupted } from '../exec/request.ts'
import { printJson, printStderr } from '../output/print.ts'
import { getProgress } from '../output/status-line.ts'
import { waitForBox } from '../wait/wait-for-box.ts'

export type BoxChange = {
  /** Such as "move". */
  name: string
  /** The path of the request after the id of the box. */
  route: string
  body: Record<string, unknown>
  /** The error code of a refusal. */
  rejection: string
  /** Whether the change is complete. @throws CliError when it has failed */
  isMet(detail: BoxDetail): boolean
  /** The result, after the name of the box. @param isComplete false with --no-wait */
  describe(isComplete: boolean): string
}

/** @param boxName name or id */
export async function changeBox(
  session: Session,
  boxName: string,
  { name, route, body, rejection, isMet, describe }: BoxChange,
  options: OutputOptions,
): Promise<undefined> {
  const { client } = session
  const box = await client.findBox(boxName)
  const { hostname } = box
  const response = await addHints(client.request<{ box: Box }>('POST', `/boxes/${box.id}/${route}`, body), {
    [rejection]: getWaitHint(box),
  })
  const subject = `The ${name} of ${hostname}`
  const changed = options.wait
    ? await printIfInterrupted(
        session,
        `interrupted. ${subject} continues: \`${boxCommand()} wait ${hostname}\` waits for it.`,
        () => waitForBox(session, response.box, getProgress(options), { subject, isMet }),
      )
    : response.box
  if (options.json) printJson(changed)
  else if (!options.quiet) printStderr(`${hostname}: ${describe(options.wait)}`)
}
