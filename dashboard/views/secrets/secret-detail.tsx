// What a secret has beside its row: its placeholder, its grants and its usage.
import type { Secret, SecretGrant, SecretUse } from '../../../shared/api/secrets.ts'
import { formatCommandLine } from '../../data/command-line.ts'
import { describeGrant, formatGrants, formatLocations } from '../../data/secrets.ts'
import { showHidden } from '../../data/visible-text.ts'
import { getWorkspaceClient } from '../../data/workspace-client.ts'
import { Card } from '../../design/card.tsx'
import { Chips } from '../../design/chips.tsx'
import { Age } from '../age.tsx'
import { Commands } from '../command.tsx'
import { Freshness, useLoaded } from '../loaded.tsx'

type SecretDetailProps = {
  secret: Secret
  onGrant(): void
  onUngrant(grant: SecretGrant): void
  onOpen(): void
  onHide(): void
}

export function SecretDetail({ secret, onGrant, onUngrant, onOpen, onHide }: SecretDetailProps) {
  const { id, name, hosts, grants, placeholder } = secret
  const loaded = useLoaded(() => getWorkspaceClient().listSecretUses(id), [id])
  const uses = loaded.value?.uses ?? []
  return (
    <section aria-label={`Details of ${showHidden(name)}`}>
      <div class="page-head">
        <h2>{showHidden(name)}</h2>
        <Commands
          texts={['show', 'usage'].map((command) => formatCommandLine('box', 'secrets', command, name))}
        />
        <div class="actions">
          <button type="button" class="quiet" onClick={onHide}>
            Hide
          </button>
        </div>
      </div>
      <div class="cards">
        <Card title="Hosts">
          {hosts.length === 0 ? (
            <p>There is no host: the secret is used nowhere.</p>
          ) : (
            <Chips texts={hosts.map(showHidden)} />
          )}
          <p>Used in: {showHidden(formatLocations(secret))} of requests.</p>
          <p>
            Placeholder: <code>{showHidden(placeholder)}</code>
          </p>
        </Card>
        <Card title="Grants">
          {grants.length === 0 ? (
            <p>Boxes that may use it: {formatGrants(secret)}.</p>
          ) : (
            <ul class="lines">
              {grants.map((grant) => (
                <li key={grant.id}>
                  <span>{showHidden(describeGrant(grant))}</span>
                  <button
                    type="button"
                    class="quiet"
                    onClick={() => onUngrant(grant)}
                    aria-label={`Remove the grant of ${showHidden(describeGrant(grant))}`}
                  >
                    Remove
                  </button>
                </li>
              ))}
            </ul>
          )}
          <p class="actions">
            <button type="button" onClick={onGrant}>
              Grant
            </button>
            {secret.scope === 'granted' && (
              <button type="button" onClick={onOpen}>
                Open to the workspace
              </button>
            )}
          </p>
        </Card>
      </div>
      <h3>Usage</h3>
      {loaded.value !== null && uses.length === 0 && <p>No request has used the secret.</p>}
      {uses.length > 0 && <UsageTable uses={uses} />}
      <Freshness loaded={loaded} />
    </section>
  )
}

const UsageTable = ({ uses }: { uses: readonly SecretUse[] }) => (
  <table>
    <thead>
      <tr>
        <th scope="col">Box</th>
        <th scope="col">Host</th>
        <th scope="col">Requests</th>
        <th scope="col">First</th>
        <th scope="col">Last</th>
      </tr>
    </thead>
    <tbody>
      {uses.map(({ boxId, hostname, host, count, firstAt, lastAt }) => (
        <tr key={`${boxId} ${host}`}>
          <th scope="row">{showHidden(hostname ?? `deleted box ${boxId}`)}</th>
          <td data-label="Host">{showHidden(host)}</td>
          <td data-label="Requests">{count}</td>
          <td data-label="First">
            <Age at={firstAt} />
          </td>
          <td data-label="Last">
            <Age at={lastAt} />
          </td>
        </tr>
      ))}
    </tbody>
  </table>
)
