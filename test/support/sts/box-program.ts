// A program for boxes that gets credentials by the AWS SDK and prints who it is. It is one file, because boxes do not see the
// packages of the project.
import { build } from 'esbuild'
import { PROJECT_DIR } from '../project.ts'

const SOURCE = `
import { GetCallerIdentityCommand, STSClient } from '@aws-sdk/client-sts'
new STSClient({ maxAttempts: 1 }).send(new GetCallerIdentityCommand({})).then(
  ({ Arn }) => console.log(Arn),
  (error) => console.log(error.name),
)
`

/** The name of the error is printed instead, such as ExpiredTokenException. */
export async function buildCallerIdentityProgram(): Promise<Uint8Array> {
  const { outputFiles } = await build({
    stdin: { contents: SOURCE, resolveDir: PROJECT_DIR },
    bundle: true,
    platform: 'node',
    minify: true,
    write: false,
  })
  const [file] = outputFiles
  if (file === undefined) throw new Error('esbuild has written no file')
  return file.contents
}
