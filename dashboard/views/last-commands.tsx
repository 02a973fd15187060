// The newest commands of a box, on its overview.
import type { Box } from '../../shared/api/boxes.ts'
import { getClient } from '../data/live.ts'
import { formatBoxPath, formatCommandPath, getBoxKey } from '../data/routes.ts'
import { showHidden } from '../data/visible-text.ts'
import { Card } from '../design/card.tsx'
import { Skeleton } from '../design/skeleton.tsx'
import { Age } from './age.tsx'
import { useLoaded } from './loaded.tsx'
import { Problem } from './problem.tsx'
import { Result } from './result.tsx'

const COUNT = 5
const POLL_MS = 10_000
const SHOWN_CHARACTERS = 60

export function LastCommands({ box }: { box: Box }) {
  const load = () => getClient().listCommands(box.id, { limit: COUNT })
  const { value, error } = useLoaded(load, [box.id], box.observedState === 'running' ? POLL_MS : undefined)
  const key = getBoxKey(box)
  return (
    <Card title="Last commands" href={formatBoxPath(key, 'commands')} link="All commands">
      <Problem error={error} />
      {value === null && error === null && <Skeleton label="Loading the commands." rows={3} />}
      {value?.commands.length === 0 && <p>No command has run.</p>}
      <ul class="lines">
        {value?.commands.map((command) => (
          <li key={command.id}>
            <a href={formatCommandPath(key, command.id)}>
              {showHidden((command.command ?? 'not recorded').slice(0, SHOWN_CHARACTERS))}
            </a>
            <Result command={command} />
            <Age at={command.startedAt} />
          </li>
        ))}
      </ul>
    </Card>
  )
}
