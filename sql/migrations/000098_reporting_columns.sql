-- Counting rows needs none of their columns but those that say whose they are.
set local role runner_owner;
revoke select (id) on app.chat_attachments, app.context_sources, app.research_findings from runner_report;
revoke select (path) on app.context_documents from runner_report;
reset role;
