// The tools of coding agents over HTTP.
import type { Module } from '../http/module.ts'
import type { McpUrls } from './message-server.ts'
import { createMcpRoute } from './route.ts'
import type { McpSettings } from './settings.ts'

export function mcpModule({ config, urls }: { config: McpSettings; urls: McpUrls }): Module {
  if (!config.mcp) return {}
  const { route, settle } = createMcpRoute(urls)
  return { publicRoutes: [route], drain: settle }
}
