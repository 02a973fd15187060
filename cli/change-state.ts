// The action of box suspend and box wake: requests the state change, waits until it is complete, prints the box.
import type { Box } from '../shared/api/boxes.ts'
import type { JsonOption, WaitOption } from './options.ts'
import { printJson, printStderr } from './output.ts'
import type { Session } from './session.ts'
import { waitForState } from './wait.ts'

const ACTIONS = {
  suspend: { targetState: 'suspended', transition: 'suspending' },
  wake: { targetState: 'running', transition: 'waking' },
} as const

export async function changeState(
  session: Session,
  name: string,
  action: keyof typeof ACTIONS,
  options: JsonOption & WaitOption,
): Promise<undefined> {
  const { targetState, transition } = ACTIONS[action]
  const { id } = await session.client.findBox(name)
  const response = await session.client.request<{ box: Box }>('POST', `/boxes/${id}/${action}`)
  const box = options.wait
    ? await waitForState(session, response.box, targetState, !options.json)
    : response.box
  if (options.json) printJson(box)
  else if (!options.wait)
    printStderr(`${box.hostname}: ${box.observedState === targetState ? targetState : transition}`)
}
