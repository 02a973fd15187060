// What suspend and wake have in common: ask for the state, wait for it, show the box.
import type { Box } from '../shared/api/boxes.ts'
import type { JsonOption, WaitOption } from './options.ts'
import { printJson, say } from './output.ts'
import type { Session } from './session.ts'
import { waitForState } from './wait.ts'

export async function changeState(
  session: Session,
  name: string,
  verb: 'suspend' | 'wake',
  wanted: 'suspended' | 'running',
  options: JsonOption & WaitOption,
): Promise<undefined> {
  const { id } = await session.client.findBox(name)
  const asked = await session.client.control<{ box: Box }>('POST', `/boxes/${id}/${verb}`)
  const box = options.wait ? await waitForState(session, asked.box, wanted, !options.json) : asked.box
  if (options.json) printJson(box)
  else if (!options.wait) say(`${box.hostname}: ${box.observedState}, to be ${box.desiredState}`)
}
