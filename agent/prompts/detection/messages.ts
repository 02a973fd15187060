// Messages of 409 provider_not_installed and provider_not_signed_in: what is wrong, then what to do.
import type { ProviderName } from '../../../shared/api/prompts.ts'
import { ApiError } from '../../../shared/errors.ts'
import type { Backend } from '../../../shared/field-values.ts'

const TITLES: Record<ProviderName, string> = {
  claude: 'Claude Code',
  codex: 'Codex',
  opencode: 'OpenCode',
  pi: 'pi',
}
const PACKAGES: Record<ProviderName, string> = {
  claude: '@anthropic-ai/claude-code',
  codex: '@openai/codex',
  opencode: 'opencode-ai',
  pi: '@earendil-works/pi-coding-agent',
}

type Program = { name: ProviderName; program: string; installPackage: string | null }

const npmCommand = ({ name, installPackage }: Program) =>
  `\`npm install -g ${installPackage ?? PACKAGES[name]}\``

const notInstalled = (message: string) => new ApiError('provider_not_installed', message)

export const missingProgramError = (provider: Program) =>
  notInstalled(
    `${TITLES[provider.name]} is not installed on the box: \`${provider.program}\` is not on the PATH of a login shell. Run ${npmCommand(provider)} on the box.`,
  )

export const brokenProgramError = (provider: Program, path: string, failure: string) =>
  notInstalled(
    `${TITLES[provider.name]} does not work on the box: \`${path} --version\` failed: ${failure}. Install it again with ${npmCommand(provider)}.`,
  )

export const missingNpmError = (provider: Program) =>
  notInstalled(
    `${TITLES[provider.name]} is not installed on the box, and npm, which installs it, is not on the PATH of a login shell. Install Node.js with npm on the box.`,
  )

export const failedInstallError = (provider: Program, status: string, output: string) =>
  notInstalled(
    `${TITLES[provider.name]} is not installed on the box, and ${npmCommand(provider)} failed: ${status}${output === '' ? '.' : `: ${output}`}`,
  )

export const untrustedRegistryError = (provider: Program, code: string) =>
  notInstalled(
    `${TITLES[provider.name]} is not installed on the box, and npm does not trust the certificate of its registry (${code}). For a private certificate authority, set the variable NODE_EXTRA_CA_CERTS of the box to a file with its certificate, such as \`box env BOX NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt\`, and send the prompt again.`,
  )

/** @param backend that the model selects @param hint how to sign in */
export const signedOutError = (name: ProviderName, backend: Backend | null, hint: string) => {
  const problem = backend === null ? 'is not signed in' : `has no credential for ${backend}`
  return new ApiError('provider_not_signed_in', `${TITLES[name]} ${problem} on the box. ${hint}`)
}
