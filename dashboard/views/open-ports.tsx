// The ports on which the processes of a box listen, and their links, on its overview.
import type { Box } from '../../shared/api/boxes.ts'
import { getClient } from '../data/live.ts'
import { isWebUrl, listAudiences, listPortRows } from '../data/ports.ts'
import { formatBoxPath } from '../data/routes.ts'
import { showHidden } from '../data/visible-text.ts'
import { Card } from '../design/card.tsx'
import { Skeleton } from '../design/skeleton.tsx'
import { useLoaded } from './loaded.tsx'
import { Problem } from './problem.tsx'

const POLL_MS = 10_000

export function OpenPorts({ box }: { box: Box }) {
  const load = () => getClient().loadPortShares(box.id)
  const { value, error } = useLoaded(load, [box], box.observedState === 'running' ? POLL_MS : undefined)
  const mayShare = value !== null && listAudiences(value.modes).allowed.length > 0
  const rows = value === null ? [] : listPortRows(value)
  return (
    <Card title="Ports" href={formatBoxPath(box.hostname, 'processes')} link="All ports">
      <Problem error={error} />
      {value === null && error === null && <Skeleton label="Loading the ports." rows={2} />}
      {value !== null && rows.length === 0 && <p>No process is known to listen on a TCP port.</p>}
      <ul class="lines">
        {rows.map(({ port, pid, process, share }) => (
          <li key={`${port} ${pid}`}>
            <strong>{port}</strong>
            <span>{process === null ? 'not listening' : showHidden(process)}</span>
            {share === null && mayShare && (
              <a
                href={`${formatBoxPath(box.hostname, 'processes')}?share=${port}`}
                aria-label={`Share ${port}`}
              >
                Share
              </a>
            )}
            {share !== null && share.url !== null && isWebUrl(share.url) && (
              <a href={share.url} target="_blank" rel="noopener noreferrer">
                Open
              </a>
            )}
          </li>
        ))}
      </ul>
    </Card>
  )
}
