// The requests of the pages of the workspace. Only these pages, and the secrets of a box, load this file.
import { createWorkspaceClient, type WorkspaceClient } from '../api/workspace-client.ts'
import { getClient } from './live.ts'

let client: WorkspaceClient | null = null
export function getWorkspaceClient(): WorkspaceClient {
  client ??= createWorkspaceClient(getClient().send)
  return client
}
