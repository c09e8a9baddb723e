//! The lab on the real kernel: as the user who runs the tests and, where that is root, as an ordinary user
//! too.
//!
//! A test that cannot have namespaces fails, unless H123_NO_NAMESPACES=1 states that the machine cannot.
//! Arguments choose tests by a part of their name; `measure` prints figures instead, `measure-monitor` those
//! of the monitor.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]
#![expect(clippy::cast_possible_truncation, reason = "lengths of small things")]

mod capture;
mod handover;
mod help;
mod impairments;
mod measure;
mod monitor;
mod netem;
mod network;
mod processes;
mod relay;
mod rights;
mod topology;

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

/// The user and group `nobody`.
const NOBODY: u32 = 65534;
const ROLE: &str = "H123_LAB_TEST_ROLE";

type Test = (&'static str, fn());

const TESTS: &[Test] = &[
    ("rights::probe_changes_nothing", rights::probe_changes_nothing),
    (
        "rights::without_capabilities_there_is_a_typed_error",
        rights::without_capabilities_there_is_a_typed_error,
    ),
    ("rights::the_machines_settings_stay", rights::the_machines_settings_stay),
    ("rights::tcp_buffers_are_raised", rights::tcp_buffers_are_raised),
    ("network::round_trips_are_as_configured", network::round_trips_are_as_configured),
    ("network::an_echo_over_both_families", network::an_echo_over_both_families),
    ("network::tcp_takes_what_the_rate_demands", network::tcp_takes_what_the_rate_demands),
    ("network::tcp_is_as_pinned", network::tcp_is_as_pinned),
    ("network::tcp_is_the_programs_own_unless_pinned", network::tcp_is_the_programs_own_unless_pinned),
    ("network::udp_can_be_blocked_and_a_nat_can_rebind", network::udp_can_be_blocked_and_a_nat_can_rebind),
    ("network::a_link_changes_while_it_runs", network::a_link_changes_while_it_runs),
    ("network::counters_equal_what_was_sent", network::counters_equal_what_was_sent),
    ("network::a_batch_arrives_as_single_datagrams", network::a_batch_arrives_as_single_datagrams),
    ("network::all_can_be_lost", network::all_can_be_lost),
    ("network::the_seed_decides_what_is_lost", network::the_seed_decides_what_is_lost),
    ("network::a_flood_is_accounted_for", network::a_flood_is_accounted_for),
    ("network::rate_and_loss_match_the_reference", network::rate_and_loss_match_the_reference),
    ("network::an_offload_left_on_is_an_error", network::an_offload_left_on_is_an_error),
    ("impairments::chosen_packets_are_lost_by_number", impairments::chosen_packets_are_lost_by_number),
    (
        "impairments::fate_is_the_same_live_and_on_the_virtual_clock",
        impairments::fate_is_the_same_live_and_on_the_virtual_clock,
    ),
    ("impairments::every_packet_can_come_twice", impairments::every_packet_can_come_twice),
    ("impairments::chosen_packets_overtake", impairments::chosen_packets_overtake),
    ("impairments::jitter_keeps_the_order_unless_asked", impairments::jitter_keeps_the_order_unless_asked),
    ("impairments::a_queue_holds_what_it_says", impairments::a_queue_holds_what_it_says),
    ("impairments::an_outage_loses_or_keeps", impairments::an_outage_loses_or_keeps),
    (
        "impairments::the_timeline_counts_from_the_runs_start",
        impairments::the_timeline_counts_from_the_runs_start,
    ),
    (
        "impairments::codel_marks_who_can_be_marked_and_drops_others",
        impairments::codel_marks_who_can_be_marked_and_drops_others,
    ),
    ("impairments::fq_codel_serves_flows_in_turn", impairments::fq_codel_serves_flows_in_turn),
    ("impairments::traces_are_followed", impairments::traces_are_followed),
    (
        "topology::delays_chained_over_two_links_give_the_sum",
        topology::delays_chained_over_two_links_give_the_sum,
    ),
    (
        "topology::a_switch_is_no_hop_and_wires_are_at_once",
        topology::a_switch_is_no_hop_and_wires_are_at_once,
    ),
    (
        "topology::a_host_between_two_networks_forwards_nothing",
        topology::a_host_between_two_networks_forwards_nothing,
    ),
    (
        "handover::every_run_has_its_handovers_and_begins_at_the_first_address",
        handover::every_run_has_its_handovers_and_begins_at_the_first_address,
    ),
    (
        "handover::a_timeline_waits_for_a_client_that_starts",
        handover::a_timeline_waits_for_a_client_that_starts,
    ),
    ("handover::a_handover_breaks_tcp", handover::a_handover_breaks_tcp),
    ("handover::a_host_behind_a_switch_moves_too", handover::a_host_behind_a_switch_moves_too),
    (
        "capture::tshark_reads_every_frame_and_why_it_was_lost",
        capture::tshark_reads_every_frame_and_why_it_was_lost,
    ),
    ("capture::a_capture_can_be_followed", capture::a_capture_can_be_followed),
    ("netem::what_this_kernel_lacks_is_named", netem::what_this_kernel_lacks_is_named),
    ("netem::what_netem_cannot_honour_is_named", netem::what_netem_cannot_honour_is_named),
    ("netem::the_bucket_holds_the_rate", netem::the_bucket_holds_the_rate),
    ("netem::queues_hold_what_they_say", netem::queues_hold_what_they_say),
    ("netem::the_order_is_kept_and_counted", netem::the_order_is_kept_and_counted),
    ("netem::both_families_and_no_housekeeping_pass", netem::both_families_and_no_housekeeping_pass),
    ("netem::codel_is_the_kernels_own", netem::codel_is_the_kernels_own),
    ("netem::delay_loss_and_order_are_as_configured", netem::delay_loss_and_order_are_as_configured),
    ("monitor::what_happens_in_the_nodes_is_in_the_rows", monitor::what_happens_in_the_nodes_is_in_the_rows),
    ("monitor::a_node_that_is_this_machine", monitor::a_node_that_is_this_machine),
    (
        "relay::tcp_reaches_a_server_outside_over_the_emulated_link",
        relay::tcp_reaches_a_server_outside_over_the_emulated_link,
    ),
    (
        "relay::datagrams_keep_their_limits_and_their_clients",
        relay::datagrams_keep_their_limits_and_their_clients,
    ),
    (
        "relay::a_refused_connection_and_a_reset_are_passed_on",
        relay::a_refused_connection_and_a_reset_are_passed_on,
    ),
    ("processes::input_output_and_exit", processes::input_output_and_exit),
    ("processes::stop_and_timeout", processes::stop_and_timeout),
    ("processes::cpu_time_is_counted", processes::cpu_time_is_counted),
    ("processes::a_node_has_its_own_processes", processes::a_node_has_its_own_processes),
    ("processes::all_end_when_the_lab_is_dropped", processes::all_end_when_the_lab_is_dropped),
    ("processes::all_end_when_the_tool_is_killed", processes::all_end_when_the_tool_is_killed),
    ("processes::many_labs_leave_nothing_behind", processes::many_labs_leave_nothing_behind),
    ("processes::a_lab_without_namespaces", processes::a_lab_without_namespaces),
];

fn main() -> ExitCode {
    if std::env::var("H123_NO_NAMESPACES").is_ok_and(|value| value == "1") {
        eprintln!("SKIPPED: every test of the lab, because H123_NO_NAMESPACES=1");
        return ExitCode::SUCCESS;
    }
    let is_root = help::effective_user() == 0;
    if let Err(missing) = lab::enter() {
        eprintln!("{missing}\nWithout namespaces set H123_NO_NAMESPACES=1; the lab is not tested then.");
        return ExitCode::FAILURE;
    }
    let role = std::env::var(ROLE).unwrap_or_default();
    if role == "tool" {
        processes::be_a_tool();
    }
    let filters: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    if filters == ["measure"] {
        measure::measure();
        return ExitCode::SUCCESS;
    }
    if filters == ["measure-monitor"] {
        monitor::measure();
        return ExitCode::SUCCESS;
    }
    let chosen =
        TESTS.iter().filter(|(name, _)| filters.is_empty() || filters.iter().any(|part| name.contains(part)));
    let user = if is_root { "root" } else { "an ordinary user" };
    let mut failed = Vec::new();
    for (name, test) in chosen {
        let began = std::time::Instant::now();
        let result = std::panic::catch_unwind(test);
        println!(
            "as {user}: {name} ... {} ({:.2?})",
            if result.is_ok() { "ok" } else { "FAILED" },
            began.elapsed()
        );
        if result.is_err() {
            failed.push(name);
        }
    }
    let is_user_ok = !is_root || run_as_nobody(&filters);
    if failed.is_empty() && is_user_ok {
        ExitCode::SUCCESS
    } else {
        eprintln!("failed as {user}: {failed:?}");
        ExitCode::FAILURE
    }
}

/// The same tests once more without any rights.
fn run_as_nobody(filters: &[String]) -> bool {
    let mut command = Command::new("/proc/self/exe");
    command.args(filters).uid(NOBODY).gid(NOBODY).current_dir("/");
    command.status().is_ok_and(|status| status.success())
}
