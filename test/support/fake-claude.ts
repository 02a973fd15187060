// A scripted coding agent: a program with the name and the output of Claude Code.

export const SESSION = '5e551011-0000-4000-8000-000000000001'

/** Repeats its prompt. The prompt `wait` waits until it is interrupted, `fail` fails. */
export const FAKE_CLAUDE = `#!/bin/sh
if [ "$1" = --version ]; then echo '2.1.329 (Claude Code)'; exit 0; fi
prompt=$(cat)
text() { echo '{"type":"assistant","message":{"content":[{"type":"text","text":"'"$1"'"}]}}'; }
echo '{"type":"system","subtype":"init","session_id":"${SESSION}"}'
case $prompt in
  wait) text waiting; trap 'exit 0' INT; while :; do sleep 0.05; done ;;
  fail) echo '{"type":"result","subtype":"success","is_error":true,"result":"no such model"}'; exit 1 ;;
esac
echo '{"type":"assistant","message":{"content":[{"type":"tool_use","id":"1","name":"Bash","input":{"command":"ls"}}]}}'
echo '{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"a"}]}]}}'
case "$*" in *--resume*) text "again: $prompt" ;; *) text "$prompt" ;; esac
echo '{"type":"result","subtype":"success","is_error":false,"result":"end"}'
`
