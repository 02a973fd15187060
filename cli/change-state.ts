// The action of suspend and wake: requests the state, waits for it, prints the box.
import type { Box } from '../shared/api/boxes.ts'
import type { JsonOption, WaitOption } from './options.ts'
import { printJson, printStderr } from './output.ts'
import type { Session } from './session.ts'
import { waitForState } from './wait.ts'

const ACTIONS = {
  suspend: { wanted: 'suspended', inProgress: 'suspending' },
  wake: { wanted: 'running', inProgress: 'waking' },
} as const

export async function changeState(
  session: Session,
  name: string,
  action: keyof typeof ACTIONS,
  options: JsonOption & WaitOption,
): Promise<undefined> {
  const { wanted, inProgress } = ACTIONS[action]
  const { id } = await session.client.findBox(name)
  const response = await session.client.request<{ box: Box }>('POST', `/boxes/${id}/${action}`)
  const box = options.wait ? await waitForState(session, response.box, wanted, !options.json) : response.box
  if (options.json) printJson(box)
  else if (!options.wait)
    printStderr(`${box.hostname}: ${box.observedState === wanted ? wanted : inProgress}`)
}
