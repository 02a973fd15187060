// Well-known names of secrets: the hosts that accept them, and the credential channel of environments to which they belong.
import type { CredentialChannel } from './api/environments.ts'

export type KnownSecret = { channel: CredentialChannel; hosts: readonly string[]; description: string }

const GITHUB_HOSTS = ['github.com', 'api.github.com', 'uploads.github.com', 'ghcr.io']
const channel = (
  name: CredentialChannel,
  secrets: Record<string, Omit<KnownSecret, 'channel'>>,
): [string, KnownSecret][] =>
  Object.entries(secrets).map(([secret, fields]) => [secret, { channel: name, ...fields }])

export const KNOWN_SECRETS: Readonly<Record<string, KnownSecret>> = Object.fromEntries([
  ...channel('git', {
    GITHUB_TOKEN: { hosts: GITHUB_HOSTS, description: 'GitHub' },
    GH_TOKEN: { hosts: GITHUB_HOSTS, description: 'GitHub' },
    GITLAB_TOKEN: { hosts: ['gitlab.com'], description: 'GitLab' },
    BITBUCKET_TOKEN: { hosts: ['bitbucket.org', 'api.bitbucket.org'], description: 'Bitbucket' },
    CODEBERG_TOKEN: { hosts: ['codeberg.org'], description: 'Codeberg' },
  }),
  ...channel('cloud', {
    HCLOUD_TOKEN: { hosts: ['api.hetzner.cloud'], description: 'Hetzner Cloud' },
    DIGITALOCEAN_ACCESS_TOKEN: { hosts: ['api.digitalocean.com'], description: 'DigitalOcean' },
    CLOUDFLARE_API_TOKEN: { hosts: ['api.cloudflare.com'], description: 'Cloudflare' },
    FLY_API_TOKEN: { hosts: ['api.fly.io', 'api.machines.dev'], description: 'Fly.io' },
    VERCEL_TOKEN: { hosts: ['api.vercel.com'], description: 'Vercel' },
    NETLIFY_AUTH_TOKEN: { hosts: ['api.netlify.com'], description: 'Netlify' },
    LINODE_CLI_TOKEN: { hosts: ['api.linode.com'], description: 'Linode' },
  }),
  ...channel('codingAgents', {
    ANTHROPIC_API_KEY: { hosts: ['api.anthropic.com'], description: 'Anthropic' },
    OPENAI_API_KEY: { hosts: ['api.openai.com'], description: 'OpenAI' },
    OPENROUTER_API_KEY: { hosts: ['openrouter.ai'], description: 'OpenRouter' },
    DEEPSEEK_API_KEY: { hosts: ['api.deepseek.com'], description: 'DeepSeek' },
    GEMINI_API_KEY: { hosts: ['generativelanguage.googleapis.com'], description: 'Google Gemini' },
    MISTRAL_API_KEY: { hosts: ['api.mistral.ai'], description: 'Mistral' },
    GROQ_API_KEY: { hosts: ['api.groq.com'], description: 'Groq' },
    XAI_API_KEY: { hosts: ['api.x.ai'], description: 'xAI' },
  }),
])
