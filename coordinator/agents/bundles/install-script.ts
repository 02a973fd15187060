// Renders install/bootstrap/install.sh with the settings of this coordinator.
import type { AgentBundle } from './agent-bundles.ts'

export type InstallSettings = {
  coordinatorUrl: string
  /** Base64 of the public key in SPKI form. */
  publicKey: string
  /** Milliseconds since the epoch. */
  now: number
  bundles: readonly AgentBundle[]
}

/** The line of the template that the settings replace. */
const SETTINGS_LINE = '  fail_unrendered # replaced by the coordinator with its settings\n'

export function renderInstallScript(template: string, settings: InstallSettings): string {
  const { coordinatorUrl, publicKey, now, bundles } = settings
  const lines = bundles.map(({ platform, version, buildId, size, unpackedSize, sha256, signature }) =>
    [platform, version, buildId, size, unpackedSize, sha256, signature].join(' '),
  )
  const assignments = {
    coordinator_url: coordinatorUrl,
    coordinator_time: String(Math.floor(now / 1000)),
    public_key: publicKey,
    bundles: lines.join('\n'),
  }
  const text = Object.entries(assignments).map(([name, value]) => `  ${name}=${quote(value)}\n`)
  if (!template.includes(SETTINGS_LINE)) throw new Error('the template has no line for the settings')
  // A function: the replacement is inserted without an interpretation of $.
  return template.replace(SETTINGS_LINE, () => text.join(''))
}

/** A shell word. */
const quote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`
