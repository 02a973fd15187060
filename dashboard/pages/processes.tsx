// The page Processes and ports of a box.
import type { Box } from '../../shared/api/boxes.ts'
import { formatState } from '../data/items.ts'
import { now } from '../data/live.ts'
import { formatBoxPath } from '../data/routes.ts'
import { Command } from '../views/command.tsx'
import { Ports } from '../views/processes/ports.tsx'
import { ProcessTable } from '../views/processes/process-table.tsx'

const HOUR_MS = 3_600_000

export function ProcessesPage({ box }: { box: Box }) {
  const { hostname, observedState } = box
  const isRunning = observedState === 'running'
  const query = new URLSearchParams({
    from: new Date(now.value - HOUR_MS).toISOString(),
    to: new Date(now.value).toISOString(),
    at: new Date(now.value).toISOString(),
  })
  return (
    <>
      <p class="tools">
        <Command text={`box top ${hostname}`} />
        <Command text={`box ports ${hostname}`} />
        <a href={`${formatBoxPath(hostname, 'timeline')}?${query}`}>Processes of an earlier moment</a>
      </p>
      <section aria-labelledby="processes">
        <h2 id="processes">Processes</h2>
        {isRunning ? (
          <ProcessTable box={box} />
        ) : (
          <p>
            The box is {formatState(observedState)}: no process runs. Wake it with{' '}
            <Command text={`box wake ${hostname}`} />
          </p>
        )}
      </section>
      <section aria-labelledby="ports">
        <h2 id="ports">Ports</h2>
        <Ports box={box} />
      </section>
    </>
  )
}
