// Which credentials count for a backend.
import t from 'tap'
import {
  backendCredentialFiles,
  hasAwsVariables,
  hasBackendCredential,
  resolveInHome,
} from '../../../../agent/prompts/providers/backend-credentials.ts'

const HOME = '/home/user'
const check = (
  backend: Parameters<typeof hasBackendCredential>[0],
  env: Record<string, string>,
  files: Record<string, string> = {},
) =>
  hasBackendCredential(backend, {
    env: { HOME, ...env },
    readText: async (path) => files[path] ?? null,
  })

t.test('OpenRouter and DeepSeek need a key that is not blank', async (t) => {
  t.equal(await check('openrouter', { OPENROUTER_API_KEY: 'placeholder' }), true)
  t.equal(await check('openrouter', { OPENROUTER_API_KEY: ' ' }), false)
  t.equal(await check('openrouter', { DEEPSEEK_API_KEY: 'k' }), false)
  t.equal(await check('deepseek', { DEEPSEEK_API_KEY: 'k' }), true)
})

t.test('Amazon Bedrock needs variables that select a credential', async (t) => {
  t.equal(await check('amazon-bedrock', {}), false)
  t.equal(await check('amazon-bedrock', { AWS_BEARER_TOKEN_BEDROCK: 'k' }), true)
  t.equal(await check('amazon-bedrock', { AWS_ACCESS_KEY_ID: 'k' }), false, 'without the secret')
  t.equal(await check('amazon-bedrock', { AWS_ACCESS_KEY_ID: 'k', AWS_SECRET_ACCESS_KEY: 's' }), true)
  t.equal(hasAwsVariables({ AWS_PROFILE: 'work' }), true)
})

t.test('or a file of the AWS tools', async (t) => {
  const [credentials = '', config = ''] = backendCredentialFiles({ HOME })
  t.strictSame([credentials, config], ['/home/user/.aws/credentials', '/home/user/.aws/config'])
  t.equal(await check('amazon-bedrock', {}, { [credentials]: '[default]\naws_access_key_id = AKIA\n' }), true)
  t.equal(await check('amazon-bedrock', {}, { [credentials]: '[default]\naws_access_key_id =\n' }), false)
  t.equal(await check('amazon-bedrock', {}, { [config]: '[default]\nregion = us-east-1\n' }), false)
  t.equal(await check('amazon-bedrock', {}, { [config]: '[profile x]\nsso_session = s\n' }), true)
  const moved = { AWS_SHARED_CREDENTIALS_FILE: '~/keys' }
  t.equal(await check('amazon-bedrock', moved, { '/home/user/keys': 'aws_access_key_id=A' }), true)
})

t.test('paths are resolved under the home directory', async (t) => {
  t.equal(resolveInHome({ HOME }, '~/a'), '/home/user/a')
  t.equal(resolveInHome({ HOME }, 'a'), '/home/user/a')
  t.equal(resolveInHome({ HOME }, '/a'), '/a')
})
