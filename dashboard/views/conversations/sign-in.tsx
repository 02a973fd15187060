// The dialog that signs a coding agent in: it mounts a secret on the box, or a new key, which becomes a secret.
import type { Box } from '../../../shared/api/boxes.ts'
import type { Secret } from '../../../shared/api/secrets.ts'
import type { CodingAgent } from '../../data/coding-agents.ts'
import { formatCommandLine } from '../../data/command-line.ts'
import { showHidden } from '../../data/visible-text.ts'
import { getWorkspaceClient } from '../../data/workspace-client.ts'
import type { DialogProps } from '../use-dialog.tsx'

/** @param secrets those that the box may mount */
export function createSignInDialog(
  { id, hostname }: Box,
  { label, keys }: CodingAgent,
  secrets: readonly Secret[],
  done: () => Promise<void>,
): DialogProps {
  const find = (secretId: string | undefined) => secrets.find((secret) => secret.id === secretId)
  const suggested = secrets.find(({ name }) => keys.some(({ variable }) => variable === name))
  return {
    title: `Sign in to ${label}`,
    children: (
      <p>
        The key stays on the coordinator: the box has a placeholder instead of it, so that {label} can use the
        key and cannot read it.
      </p>
    ),
    fields: [
      ...(secrets.length === 0
        ? []
        : [
            {
              name: 'secretId',
              label: 'Secret',
              options: [
                { value: '', label: 'A new key, for this box only' },
                ...secrets.map((secret) => ({ value: secret.id, label: showHidden(secret.name) })),
              ],
              value: suggested?.id ?? '',
            },
          ]),
      {
        name: 'value',
        label: 'Key',
        hint: secrets.length === 0 ? 'One line. It is never shown.' : 'Of a new key. It is never shown.',
        isSecret: true,
      },
      {
        name: 'envName',
        label: 'Provider',
        options: keys.map((key) => ({ value: key.variable, label: `${key.label}, ${key.variable}` })),
        value: suggested?.name ?? keys[0]?.variable ?? '',
      },
    ],
    submitLabel: 'Sign in',
    accepts: ({ secretId, value }) => Boolean(secretId) || Boolean(value),
    formatCommand({ secretId, envName = '' }) {
      const name = find(secretId)?.name
      const mount = formatCommandLine(
        ...['box', 'mount', hostname, name ?? envName],
        ...(name !== undefined && name !== envName ? ['--as', envName] : []),
      )
      return name === undefined
        ? `${formatCommandLine('box', 'secrets', 'set', envName, '--grant', hostname)} && ${mount}`
        : mount
    },
    async submit({ secretId, value = '', envName = '' }) {
      const hosts = keys.filter(({ variable }) => variable === envName).map(({ host }) => host)
      await getWorkspaceClient().mountSecret(
        id,
        secretId ? { secretId, envName } : { name: envName, value, envName, hosts },
      )
      await done()
    },
  }
}
