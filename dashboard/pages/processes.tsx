// The page Processes and ports of a box.
import type { Box } from '../../shared/api/boxes.ts'
import { formatState } from '../data/items.ts'
import { now } from '../data/live.ts'
import { formatBoxPath } from '../data/routes.ts'
import { Commands } from '../views/command.tsx'
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
      <section aria-labelledby="ports">
        <h2 id="ports">Ports</h2>
        <Ports box={box} />
      </section>
      <section aria-labelledby="processes">
        <div class="section-head">
          <h2 id="processes">Processes</h2>
          <a href={`${formatBoxPath(hostname, 'timeline')}?${query}`}>Processes of an earlier moment</a>
          <Commands texts={[`box top ${hostname}`, `box ports ${hostname}`]} />
        </div>
        {isRunning ? (
          <ProcessTable box={box} />
        ) : (
          <p>
            The box is {formatState(observedState)}: no process runs. Wake it with{' '}
            <Commands texts={[`box wake ${hostname}`]} />
          </p>
        )}
      </section>
    </>
  )
}
