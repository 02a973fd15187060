// What a secret has beside its row: its placeholder, its grants and its usage.
import type { Secret, SecretGrant, SecretUse } from '../../../shared/api/secrets.ts'
import { formatCommandLine } from '../../data/command-line.ts'
import { describeGrant, formatGrants, formatLocations } from '../../data/secrets.ts'
import { showHidden } from '../../data/visible-text.ts'
import { getWorkspaceClient } from '../../data/workspace-client.ts'
import { Age } from '../age.tsx'
import { Command } from '../command.tsx'
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
      <h2>{showHidden(name)}</h2>
      <p>
        Placeholder: <code>{showHidden(placeholder)}</code>
      </p>
      <h3>Hosts</h3>
      {hosts.length === 0 ? (
        <p>There is no host: the secret is used nowhere.</p>
      ) : (
        <ul>
          {hosts.map((host) => (
            <li key={host}>{showHidden(host)}</li>
          ))}
        </ul>
      )}
      <p>Used in: {showHidden(formatLocations(secret))} of requests.</p>
      <h3>Grants</h3>
      <p class="tools">
        <button type="button" onClick={onGrant}>
          Grant
        </button>
        {secret.scope === 'granted' && (
          <button type="button" onClick={onOpen}>
            Open to the workspace
          </button>
        )}
        <Command text={formatCommandLine('box', 'secrets', 'show', name)} />
      </p>
      {grants.length === 0 ? (
        <p>Boxes that may use it: {formatGrants(secret)}.</p>
      ) : (
        <ul>
          {grants.map((grant) => (
            <li key={grant.id}>
              {showHidden(describeGrant(grant))}{' '}
              <button
                type="button"
                onClick={() => onUngrant(grant)}
                aria-label={`Remove the grant of ${showHidden(describeGrant(grant))}`}
              >
                Remove
              </button>
            </li>
          ))}
        </ul>
      )}
      <h3>Usage</h3>
      <p>
        <Command text={formatCommandLine('box', 'secrets', 'usage', name)} />
      </p>
      {loaded.value !== null && uses.length === 0 && <p>No request has used the secret.</p>}
      {uses.length > 0 && <UsageTable uses={uses} />}
      <Freshness loaded={loaded} />
      <p>
        <button type="button" onClick={onHide}>
          Hide
        </button>
      </p>
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
